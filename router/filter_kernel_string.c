/* Strings in the text for the kernel.
 *
 * Seen in kernel/trace/trace_events_filter.c and tried on running kernels from 5.10 to 7.3:
 * - a string of 256 bytes or more is refused, and nothing in quotes is escaped;
 * - "*x" looks at the last bytes of a char array, behind the NUL; "*x*" finds what is left there;
 *   a pattern that begins with a digit is a plain string. One with a backslash goes to the full
 *   glob matcher, which has none of this: so one is put before a letter that doesn't need it;
 * - up to 6.1 at least, a class such as [!a] takes the NUL for one of its characters;
 * - a string of length 0 (no NUL either) is compared with whatever lies in its place, and so is
 *   one without its NUL. */
#include "router/filter_kernel.h"

#include <string.h>

#define KERNEL_STRING_MAX 255

/* A string's place as the kernel's matchers see it. */
struct kernel_string {
	bool dynamic; /* __data_loc or __rel_loc */
	bool relative;
	bool terminated;
	uint16_t type; /* the event's number */
};

static bool describe_string(const struct filter_field *field, struct kernel_string *ret)
{
	const struct schema_field *row;

	if (!field->kernel_name)
		return false;
	*ret = (struct kernel_string){ .terminated = field->terminated };
	if (field->source != FROM_PAYLOAD)
		return true;
	row = &field->schema->fields[field->index];
	ret->dynamic = row->place != SCHEMA_FIXED;
	ret->relative = row->place == SCHEMA_REL_LOC;
	ret->type = (uint16_t)field->schema->header.event_type;
	return !ret->dynamic || row->size == 4;
}

/* The kernel takes the string of a location word of 0 from the event's first bytes, which are its
 * type. Whether those can't be taken for a text that begins with `text`. */
static bool differs_from_type(const struct kernel_string *string, const char *text, size_t size)
{
	char bytes[sizeof(string->type)];

	memcpy(bytes, &string->type, sizeof(bytes));
	if (!string->type || string->relative || !size)
		return false;
	return text[0] != bytes[0] || (size > 1 && text[1] != bytes[1]);
}

static bool can_be_quoted(const char *text, size_t size)
{
	return size <= KERNEL_STRING_MAX && !(memchr(text, '"', size) && memchr(text, '\'', size));
}

static enum kernel_written write_literal(struct kernel_writer *writer,
	const struct filter_pred *pred, const struct filter_string *text)
{
	struct kernel_string string;

	if (!describe_string(&pred->field, &string) || !can_be_quoted(text->at, text->size))
		return kernel_widen(writer);
	if (string.dynamic) {
		bool good = pred->negated ? !text->size || (string.terminated &&
								   differs_from_type(&string,
									   text->at, text->size))
					  : text->size > 0;

		if (!good)
			return kernel_widen(writer);
		writer->exact = false;
	}
	filter_out_add(
		&writer->out, "%s %s ", pred->field.kernel_name, pred->negated ? "!=" : "==");
	filter_out_quoted(&writer->out, text->at, text->size);
	return KERNEL_TEXT;
}

/* What all strings of a set begin with. */
static size_t common_prefix(const struct filter_strings *strings)
{
	size_t size = strings->at[0].size;

	for (size_t i = 1; i < strings->count; i++) {
		size_t same = 0;

		while (same < size && same < strings->at[i].size &&
			strings->at[i].at[same] == strings->at[0].at[same])
			same++;
		size = same;
	}
	return size;
}

/* A pattern of one of the four shapes as text for ~ : escaped, and so that the kernel uses its glob
 * matcher for all but a plain prefix. Returns false if it doesn't fit. */
static bool spell_pattern(enum filter_glob_shape shape, const char *text, size_t size, char *out,
	size_t room, bool *ret_plain)
{
	bool general = shape == GLOB_GENERAL, escaped = general;
	size_t used = 0;

	if (2 * size + 3 > room)
		return false;
	if (shape == GLOB_SUFFIX || shape == GLOB_SUBSTRING)
		out[used++] = '*';
	for (size_t i = 0; i < size; i++) {
		bool special = !general && strchr("*?[\\", text[i]);
		bool first = !i && (general ? text[i] == '!' || (text[i] >= '0' && text[i] <= '9')
					    : shape != GLOB_PREFIX || text[i] == '!' ||
							   (text[i] >= '0' && text[i] <= '9'));

		if (special || first) {
			out[used++] = '\\';
			escaped = true;
		}
		out[used++] = text[i];
	}
	if (shape == GLOB_PREFIX || shape == GLOB_SUBSTRING)
		out[used++] = '*';
	out[used] = '\0';
	*ret_plain = !escaped;
	return can_be_quoted(out, used);
}

/* Older kernels let such a class match the end of the string, too. */
static bool has_inverted_class(const struct filter_pred *pred)
{
	return pred->shape == GLOB_GENERAL && memmem(pred->text, pred->text_size, "[!", 2);
}

/* Whether the kernel's matcher says no to nothing that the filter says yes to. */
static bool pattern_is_safe(
	const struct filter_pred *pred, const struct kernel_string *string, bool plain)
{
	/* Without a NUL the glob matcher reads on: it may find more behind, and may miss an end. */
	if (!string->terminated && !plain && (pred->negated || pred->shape != GLOB_SUBSTRING))
		return false;
	if (pred->negated && has_inverted_class(pred))
		return false;
	if (!string->dynamic)
		/* A longer text than fits never matches here, but may in what follows the field. */
		return !pred->negated || pred->shape == GLOB_GENERAL ||
		       pred->text_size <= pred->field.size || !pred->field.size;
	if (pred->negated && pred->shape == GLOB_PREFIX)
		return differs_from_type(string, pred->text, pred->text_size);
	return !filter_pred_test_text(pred, "", 0);
}

enum kernel_written filter_kernel_pattern(
	struct kernel_writer *writer, const struct filter_pred *pred)
{
	char spelt[2 * KERNEL_STRING_MAX + 8];
	struct kernel_string string;
	bool plain;

	if (!describe_string(&pred->field, &string) ||
		!spell_pattern(
			pred->shape, pred->text, pred->text_size, spelt, sizeof(spelt), &plain) ||
		!pattern_is_safe(pred, &string, plain))
		return kernel_widen(writer);
	if (string.dynamic || !string.terminated || has_inverted_class(pred))
		writer->exact = false;
	filter_out_add(&writer->out, "%s%s ~ ", pred->negated ? "!(" : "", pred->field.kernel_name);
	filter_out_quoted(&writer->out, spelt, strlen(spelt));
	filter_out_add(&writer->out, pred->negated ? ")" : "");
	return KERNEL_TEXT;
}

/* Too many strings to list: what they all begin with. */
static enum kernel_written write_prefix_of(
	struct kernel_writer *writer, const struct filter_pred *pred)
{
	struct filter_pred prefix = *pred;

	writer->exact = false;
	prefix.kind = PRED_PATTERN;
	prefix.shape = GLOB_PREFIX;
	prefix.text_size = common_prefix(&pred->strings);
	prefix.text = pred->strings.at[0].at;
	return prefix.text_size ? filter_kernel_pattern(writer, &prefix) : KERNEL_ALL;
}

enum kernel_written filter_kernel_strings(
	struct kernel_writer *writer, const struct filter_pred *pred)
{
	size_t start = writer->out.size, count = pred->strings.count, written = 0;
	struct kernel_string string;

	/* Any string will do, but an unreadable one is none. */
	if (!count && (!describe_string(&pred->field, &string) || string.dynamic))
		return kernel_widen(writer);
	if (count > writer->most) {
		if (!pred->negated)
			return write_prefix_of(writer, pred);
		count = writer->most;
		writer->exact = false;
	}
	if (count > 1)
		filter_out_add(&writer->out, "(");
	for (size_t i = 0; i < count; i++) {
		size_t before = writer->out.size;

		if (written)
			filter_out_add(&writer->out, pred->negated ? " && " : " || ");
		if (write_literal(writer, pred, &pred->strings.at[i]) == KERNEL_TEXT) {
			written++;
			continue;
		}
		/* "Or true" is true; "and true" is nothing. */
		writer->out.size = before;
		if (!pred->negated) {
			written = 0;
			break;
		}
	}
	if (!written) {
		writer->out.size = start;
		return KERNEL_ALL;
	}
	if (count > 1)
		filter_out_add(&writer->out, ")");
	return KERNEL_TEXT;
}
