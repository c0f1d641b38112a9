#include "tests/differential/both_forms.h"

#include "base/checked.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "tests/support/text_show.h"

static bool same_bytes(const struct schema *text, const struct schema_field *f, const struct both_event *a,
	const struct schema *raw, const struct schema_field *g, const struct both_event *b)
{
	const uint8_t *x, *y;
	size_t x_size, y_size;

	assert_int_equal(schema_read_bytes(text, f, a->payload, a->size, &x, &x_size), 0);
	assert_int_equal(schema_read_bytes(raw, g, b->payload, b->size, &y, &y_size), 0);
	if (f->kind == SCHEMA_STRING) {
		/* The kernel prints a marker's last newline as the line's end. */
		if (g->place == SCHEMA_TAIL && y_size && y[y_size - 1] == '\n')
			y_size--;
		return x_size == y_size && memcmp(x, y, x_size) == 0;
	}
	for (size_t i = 0; i < f->count; i++) {
		uint64_t v, w;

		if (schema_read_element(text, f, a->payload, a->size, i, &v) ||
			schema_read_element(raw, g, b->payload, b->size, i, &w) || v != w)
			return false;
	}
	return true;
}

static void fail_of_field(struct both_kind *kind, const char *name, const struct both_event *text, const struct both_event *raw)
{
	static struct text_show a, b;

	fail_msg("%s, field %s\n  text: %s\n  raw:  %s", kind->event->name, name,
		text_show(&a, &kind->text, text->payload, text->size),
		text_show(&b, &kind->event->schema, raw->payload, raw->size));
}

static int read_value(const struct schema *schema, const struct schema_field *field, const struct both_event *event,
	uint64_t *ret)
{
	const uint8_t *bytes;
	size_t size;

	*ret = 0;
	if (field->kind == SCHEMA_INTEGER)
		return schema_read_integer(schema, field, event->payload, event->size, ret);
	return schema_read_bytes(schema, field, event->payload, event->size, &bytes, &size);
}

/* False: the text has no value of it. */
static bool compare_field(struct both_kind *kind, const struct schema_field *f, const struct both_event *text,
	const struct both_event *raw)
{
	const struct schema *binary = &kind->event->schema;
	const char *name = schema_string(&kind->text, f->name);
	int at = schema_find(binary, name);
	const struct schema_field *g;
	uint64_t v, w;
	bool same;
	int r;

	assert_true(at >= 0);
	g = &binary->fields[at];
	r = read_value(&kind->text, f, text, &v);
	/* What a probe could not read neither form has. */
	if (read_value(binary, g, raw, &w) == -ENODATA) {
		assert_int_equal(r, -ENODATA);
		kind->compared++;
		return true;
	}
	if (r == -ENODATA) {
		kind->absent++;
		return false;
	}
	assert_int_equal(r, 0);
	if (f->kind == SCHEMA_INTEGER)
		same = read_value(binary, g, raw, &w) == 0 && v == w;
	else
		same = same_bytes(&kind->text, f, text, binary, g, raw);
	if (!same)
		fail_of_field(kind, name, text, raw);
	kind->compared++;
	return true;
}

/* Kinds whose text has words in the place of numbers: their lines are compared with what the print format makes of the
 * bytes, from behind what is another text each time (hashed pointers). */
static const struct {
	const char *name, *from;
} printed_kinds[] = {
	{ "sched_switch", "prev_comm=" },
	{ "softirq_raise", "vec=" },
	{ "mm_page_alloc", "order=" },
};

static bool is_printed(const struct both_kind *kind, size_t *ret)
{
	for (*ret = 0; *ret < ARRAY_SIZE(printed_kinds); (*ret)++)
		if (strcmp(kind->event->name, printed_kinds[*ret].name) == 0)
			return true;
	return false;
}

static void compare_lines(const struct both_forms *both, struct both_kind *kind, size_t row, const struct both_event *text,
	const struct both_event *raw)
{
	const char *from = printed_kinds[row].from;
	const struct schema_field *last = &kind->text.fields[kind->text.header->field_count - 1];
	char *printed = NULL, line[1024];
	const uint8_t *bytes;
	size_t size;

	assert_int_equal(schema_read_bytes(&kind->text, last, text->payload, text->size, &bytes, &size), 0);
	assert_true(size < sizeof(line));
	(void)snprintf(line, sizeof(line), "%.*s", (int)size, (const char *)bytes);
	assert_int_equal(catalog_print(both->catalog, kind->event, raw->payload, raw->size, &printed), 0);
	assert_non_null(strstr(line, from));
	assert_non_null(strstr(printed, from));
	assert_string_equal(strstr(line, from), strstr(printed, from));
	free(printed);
	kind->printed++;
}

static void compare_event(const struct both_forms *both, const struct both_event *text, const struct both_event *raw)
{
	struct both_kind *kind;
	bool whole = true;
	size_t row;

	if (!raw || !raw->kind) {
		fail_msg("in raw there is no event like this %s", text->kind->name);
		return;
	}
	assert_string_equal(text->kind->name, raw->kind->name);
	/* Printed microseconds are rounded. */
	assert_int_equal(text->time / 1000, (raw->time + 500) / 1000);
	kind = raw->kind->user;
	for (uint32_t i = 0; i + 1 < kind->text.header->field_count; i++)
		whole &= compare_field(kind, &kind->text.fields[i], text, raw);
	if (!whole && is_printed(kind, &row))
		compare_lines(both, kind, row, text, raw);
}

static void tell_truth(both_truth_fn *truth, const char *name, const struct both_event *text, const struct both_event *raw,
	size_t *n)
{
	const struct both_kind *kind = raw->kind->user;

	if (!truth || strcmp(raw->kind->name, name) != 0)
		return;
	truth(&kind->text, text, *n);
	truth(&kind->event->schema, raw, *n);
	(*n)++;
}

size_t both_forms_compare(struct both_forms *both, const char *name, both_truth_fn *truth)
{
	struct both_events text = { 0 };
	size_t compared = 0, known = 0;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	both_forms_read_text(both, "trace", &text);
	for (long cpu = 0; cpu < cpus; cpu++) {
		struct both_events raw = { 0 };
		size_t at = 0;

		both_forms_read_raw(both, (uint32_t)cpu, &raw);
		for (size_t i = 0; i < text.count; i++) {
			if (text.at[i].cpu != (uint32_t)cpu)
				continue;
			compare_event(both, &text.at[i], at < raw.count ? &raw.at[at] : NULL);
			tell_truth(truth, name, &text.at[i], &raw.at[at], &known);
			at++;
		}
		assert_int_equal(at, raw.count);
		compared += at;
		both_events_release(&raw);
	}
	both_events_release(&text);
	for (size_t i = 0; i < both->kind_count; i++) {
		const struct both_kind *kind = both->kinds[i];

		if (kind->compared || kind->absent)
			print_message("  %-28s %6u fields the same, %6u not in the text, %5u lines the same\n", kind->event->name,
				kind->compared, kind->absent, kind->printed);
	}
	return compared;
}
