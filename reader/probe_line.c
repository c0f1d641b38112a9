#include "reader/probe_line.h"

#include "shm/schema.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct builder {
	struct probe_line *line;
	size_t length;
	const char *tag; /* of the canaries; NULL: none */
	bool full;
};

__attribute__((format(printf, 2, 3))) static void add(
	struct builder *builder, const char *format, ...)
{
	size_t room = sizeof(builder->line->text) - builder->length;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(builder->line->text + builder->length, room, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		builder->full = true;
	else
		builder->length += (size_t)n;
}

static int fail(struct probe_line_error *error, enum probe_line_part part, int position,
	const char *message)
{
	*error =
		(struct probe_line_error){ .part = part, .position = position, .message = message };
	return -EINVAL;
}

/* A kernel symbol, perhaps "module:symbol". Anything else could end the word or the line. */
static bool symbol_valid(const char *symbol)
{
	if (!*symbol)
		return false;
	for (; *symbol; symbol++) {
		if (!isascii(*symbol) ||
			(!isalnum((unsigned char)*symbol) && !strchr("_.$:", *symbol)))
			return false;
	}
	return true;
}

/* A dot parts the two names in the line. */
static bool event_name_valid(const char *name)
{
	if (!*name)
		return false;
	for (; *name; name++) {
		if (!isascii(*name) || (!isalnum((unsigned char)*name) && !strchr("_-", *name)))
			return false;
	}
	return true;
}

/* Bytes that the kernel's command line gives a meaning of its own: blanks part words, '#' begins a
 * comment, and a newline or ';' would begin another command. */
static bool fetch_byte_valid(char c)
{
	return isascii(c) && isgraph((unsigned char)c) && c != '#' && c != ';';
}

/* Whether the kernel prints the argument as a string: its type, behind the last colon, is one of
 * the kernel's kinds of strings or an array of them. A thread's name is a string without saying so;
 * so is a constant in quotes, which ends where the definition says and can hold no newline. */
static bool is_string(const char *fetch)
{
	static const char *const kinds[] = { "string", "ustring", "symstr" };
	const char *type = strrchr(fetch, ':');

	if (!type)
		return !strcmp(fetch, "$comm") || !strncmp(fetch, "\\\"", 2);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t length = strlen(kinds[i]);

		if (!strncmp(type + 1, kinds[i], length) &&
			(!type[1 + length] || type[1 + length] == '['))
			return true;
	}
	return false;
}

/* A constant, so that it costs the traced program no look at its memory. */
static void add_canary(struct builder *builder)
{
	struct probe_line *line = builder->line;
	size_t begin = builder->length;

	add(builder, " " TEXT_CANARY "%u_%.16s=\\0:u8", line->addition_count, builder->tag);
	line->additions[line->addition_count++] =
		(struct probe_line_addition){ .at = (uint16_t)begin,
			.size = (uint16_t)(builder->length - begin) };
}

static int add_fetch(struct builder *builder, const struct control_create *create,
	struct probe_line_error *error)
{
	const char *text = create->fetch;
	int at = 0;

	if (create->fetch_count > PROBE_LINE_FETCH_ARGS_MAX)
		return fail(error, PROBE_LINE_FETCH, -1, "more than 128 fetch arguments");
	for (uint32_t i = 0; i < create->fetch_count; i++) {
		size_t length = strlen(text);
		const char *equals = strchr(text, '=');

		for (size_t k = 0; k < length; k++) {
			if (!fetch_byte_valid(text[k]))
				return fail(error, PROBE_LINE_FETCH, at + (int)k,
					"a fetch argument can't hold this byte");
		}
		if (!equals || equals == text || !equals[1])
			return fail(error, PROBE_LINE_FETCH, at,
				"a fetch argument is NAME=FETCH[:TYPE]");
		if (!strncmp(text, TEXT_CANARY, strlen(TEXT_CANARY)))
			return fail(error, PROBE_LINE_FETCH, at,
				"names that begin with \"" TEXT_CANARY "\" are tracefan's own");
		add(builder, " %s", text);
		if (builder->tag && is_string(equals + 1))
			add_canary(builder);
		at += (int)length + 1;
		text += length + 1;
	}
	if (create->fetch_count + builder->line->addition_count > PROBE_LINE_FETCH_ARGS_MAX)
		return fail(error, PROBE_LINE_FETCH, -1,
			"more than 128 fetch arguments, as the text source needs one more for each "
			"string");
	return 0;
}

static int add_place(struct builder *builder, const struct control_create *create,
	const char *group, const char *event, int target, struct probe_line_error *error)
{
	bool is_return = create->kind == PROBE_URETPROBE || create->kind == PROBE_KRETPROBE;

	if (probe_kind_in_file(create->kind)) {
		/* The kernel resolves the descriptor as it reads the line, so no path's blanks or
		 * colons matter. */
		add(builder, "%s:%s/%s /proc/self/fd/%d:0x%llx", is_return ? "r" : "p", group,
			event, target, (unsigned long long)create->offset);
		if (create->ref_offset)
			add(builder, "(0x%llx)", (unsigned long long)create->ref_offset);
		return 0;
	}
	if (create->kind == PROBE_EVENT) {
		if (!event_name_valid(create->system) || !event_name_valid(create->event))
			return fail(error, PROBE_LINE_LOCATION, -1,
				"not the name of a system or an event");
		add(builder, "e:%s/%s %s.%s", group, event, create->system, create->event);
		return 0;
	}
	if (!symbol_valid(create->symbol))
		return fail(error, PROBE_LINE_LOCATION, -1, "not the name of a kernel symbol");
	if (is_return && create->maxactive)
		add(builder, "r%u:%s/%s %s", create->maxactive, group, event, create->symbol);
	else
		add(builder, "%s:%s/%s %s", is_return ? "r" : "p", group, event, create->symbol);
	if (create->offset)
		add(builder, "+%llu", (unsigned long long)create->offset);
	return 0;
}

int probe_line_build(const struct control_create *create, const char *group, const char *event,
	int target, const char *tag, struct probe_line *ret, struct probe_line_error *ret_error)
{
	struct builder builder = { .line = ret, .tag = tag };
	int r = add_place(&builder, create, group, event, target, ret_error);

	ret->addition_count = 0;

	if (r < 0)
		return r;
	ret->bare = builder.length;
	r = add_fetch(&builder, create, ret_error);
	if (!r && builder.full)
		return fail(ret_error, PROBE_LINE_FETCH, -1,
			"the definition is longer than the kernel takes (4095 bytes)");
	return r;
}

int probe_line_position(const struct probe_line *line, int column)
{
	/* The first argument begins one blank behind the bare line. */
	size_t first = line->bare + 1, added = 0, at = (size_t)column;

	if (column < 0 || at < first)
		return -1;
	for (uint32_t i = 0; i < line->addition_count && line->additions[i].at < at; i++) {
		const struct probe_line_addition *addition = &line->additions[i];
		size_t within = at - addition->at;

		added += within < addition->size ? within : addition->size;
	}
	return (int)(at - first - added);
}

/* "[  142.329474] trace_uprobe: error: WORDS\n  Command: COMMAND\n             ^\n" */
bool probe_line_words(const char *log, const char *command, struct probe_line_words *ret)
{
	static const char head[] = "\n  Command: ", error[] = "error: ";
	size_t length = strlen(command);
	const char *at = log, *found = NULL, *line, *end, *caret;

	while ((at = strstr(at, head))) {
		at += sizeof(head) - 1;
		if (!strncmp(at, command, length) && at[length] == '\n')
			found = at;
	}
	if (!found)
		return false;
	end = found - (sizeof(head) - 1);
	for (line = end; line > log && line[-1] != '\n'; line--)
		;
	at = strstr(line, error);
	if (at && at < end)
		line = at + sizeof(error) - 1;
	(void)snprintf(ret->message, sizeof(ret->message), "%.*s", (int)(end - line), line);
	caret = found + length + 1;
	caret += strspn(caret, " ");
	/* The caret's line is indented as the command's, whose first column is behind "  Command:
	 * ". */
	ret->column =
		*caret == '^' ? (int)(caret - (found + length + 1)) - (int)(sizeof(head) - 2) : -1;
	return true;
}
