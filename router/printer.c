#include "router/printer.h"

#include "base/cleanup.h"
#include "router/c_type.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <traceevent/event-parse.h>

/* The library reads print formats by recursion. */
#define PRINTER_DEPTH_MAX 100U

/* What it may read behind an event whose location words are wrong: a field's offset, and 16 bits each of
 * data offset and length. */
#define PRINTER_GUARD ((size_t)3 * 65536)

struct printer {
	struct tep_handle *tep;
	uint32_t least_size;
};

/* ---- a format file made fit for libtraceevent 1.7 ---- */

/* The copy on its way: never longer than the text, for a number is shorter than what it stands for. */
struct rewrite {
	const struct format_target *target;
	const struct schema *schema;
	const char *at, *end;
	char *out;
	unsigned int depth;
};

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void rewrite_quoted(struct rewrite *rewrite)
{
	char quote = *rewrite->at;

	*rewrite->out++ = *rewrite->at++;
	while (rewrite->at < rewrite->end && *rewrite->at != quote) {
		if (*rewrite->at == '\\' && rewrite->end - rewrite->at > 1)
			*rewrite->out++ = *rewrite->at++;
		*rewrite->out++ = *rewrite->at++;
	}
	if (rewrite->at < rewrite->end)
		*rewrite->out++ = *rewrite->at++;
}

/* 'c' as its number, which the library would compare as text. */
static void rewrite_character(struct rewrite *rewrite)
{
	static const char escapes[] = "n\nt\tr\r0\0";
	const char *p = rewrite->at + 1;
	unsigned char value;

	if (rewrite->end - p < 3 || (*p != '\\' ? p[1] : p[2]) != '\'') {
		rewrite_quoted(rewrite);
		return;
	}
	value = (unsigned char)*p++;
	if (value == '\\') {
		value = (unsigned char)*p++;
		for (size_t i = 0; i < sizeof(escapes) - 1; i += 2)
			if ((unsigned char)escapes[i] == value) {
				value = (unsigned char)escapes[i + 1];
				break;
			}
	}
	rewrite->out += sprintf(rewrite->out, "%u", value);
	rewrite->at = p + 1;
}

/* 0: not known. */
static uint32_t size_of(const struct rewrite *rewrite, const char *operand)
{
	struct c_type type;
	int field;

	if (!strncmp(operand, "REC->", 5)) {
		field = schema_find(rewrite->schema, operand + 5);
		return field < 0 ? 0 : rewrite->schema->fields[field].size;
	}
	c_type_parse(operand, rewrite->target->long_size, &type);
	return type.element_size;
}

/* "sizeof(...)" as its number: the library frees the type's name and goes on reading it. */
static int rewrite_sizeof(struct rewrite *rewrite)
{
	static const char word[] = "sizeof(";
	const char *operand = rewrite->at + sizeof(word) - 1;
	const char *close = memchr(operand, ')', (size_t)(rewrite->end - operand));
	CLEANUP_FREE char *copy = NULL;
	uint32_t size;

	if (!close)
		return -EOPNOTSUPP;
	copy = strndup(operand, (size_t)(close - operand));
	if (!copy)
		return -ENOMEM;
	size = size_of(rewrite, copy);
	if (!size)
		return -EOPNOTSUPP;
	rewrite->out += sprintf(rewrite->out, "%u", size);
	rewrite->at = close + 1;
	return 0;
}

/* One step outside constants. Line ends, which the library doesn't take there, become blanks. Returns 1
 * to stop: at a bracket that closes nothing, as kernels have written. */
static int rewrite_step(struct rewrite *rewrite, char before)
{
	char c = *rewrite->at;

	if (c == '"')
		rewrite_quoted(rewrite);
	else if (c == '\'')
		rewrite_character(rewrite);
	if (c == '"' || c == '\'')
		return 0;
	if (!is_word(before) && rewrite->end - rewrite->at > 7 && memcmp(rewrite->at, "sizeof(", 7) == 0)
		return rewrite_sizeof(rewrite);
	if (strchr("([{", c) && ++rewrite->depth > PRINTER_DEPTH_MAX)
		return -EOPNOTSUPP;
	if (strchr(")]}", c) && !rewrite->depth--)
		return 1;
	*rewrite->out++ = c == '\n' || c == '\r' ? ' ' : c;
	rewrite->at++;
	return 0;
}

/* The whole file, NUL-ended. The text itself was checked when its schema was made. */
static int rewrite_file(const struct format_target *target, const struct schema *schema, const char *text, size_t size,
	char **ret)
{
	static const char mark[] = "\nprint fmt:";
	const char *print = memmem(text, size, mark, sizeof(mark) - 1);
	CLEANUP_FREE char *copy = malloc(size + 2);
	struct rewrite rewrite = { .target = target, .schema = schema, .end = text + size };
	size_t head;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	if (!print)
		return -EOPNOTSUPP;
	head = (size_t)(print - text) + sizeof(mark) - 1;
	memcpy(copy, text, head);
	/* Neither does it take a dot in an event's name. */
	for (char *p = copy; *p != '\n'; p++)
		if (*p == '.')
			*p = '_';
	rewrite.at = text + head;
	rewrite.out = copy + head;
	while (!r && rewrite.at < rewrite.end)
		r = rewrite_step(&rewrite, rewrite.at[-1]);
	if (r < 0)
		return r;
	*rewrite.out++ = '\n';
	*rewrite.out = '\0';
	*ret = TAKE_PTR(copy);
	return 0;
}

/* ---- the printer ---- */

void printer_release(struct printer *printer)
{
	if (!printer)
		return;
	tep_free(printer->tep);
	free(printer);
}

static void cleanup_printer(struct printer **printer)
{
	printer_release(*printer);
}
#define CLEANUP_PRINTER __attribute__((cleanup(cleanup_printer)))

/* The library ends its list at a field that it can't read, and says nothing. */
static bool has_all_fields(const struct tep_event *event, const struct schema *schema)
{
	return event && !(event->flags & (int)TEP_EVENT_FL_FAILED) && event->format.nr_common >= 0 &&
		(uint32_t)(event->format.nr_common + event->format.nr_fields) == schema->header->field_count;
}

int printer_create(const struct format_target *target, const struct schema *schema, const char *text, size_t size,
	const char *printk_formats, struct printer **ret)
{
	CLEANUP_PRINTER struct printer *printer = calloc(1, sizeof(*printer));
	CLEANUP_FREE char *copy = NULL;
	struct tep_event *event = NULL;
	int r = rewrite_file(target, schema, text, size, &copy);

	if (r)
		return r;
	if (!printer)
		return -ENOMEM;
	printer->least_size = schema->header->fixed_size;
	printer->tep = tep_alloc();
	if (!printer->tep)
		return -ENOMEM;
	/* It would write to stderr; this is process-wide there. */
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_local_bigendian(printer->tep, tep_is_bigendian());
	tep_set_file_bigendian(printer->tep, target->big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_long_size(printer->tep, (int)target->long_size);
	(void)tep_parse_format(printer->tep, &event, copy, strlen(copy), schema_string(schema, schema->header->system));
	if (!has_all_fields(event, schema))
		return -EOPNOTSUPP;
	if (printk_formats && tep_parse_printk_formats(printer->tep, printk_formats))
		return -EBADMSG;
	*ret = TAKE_PTR(printer);
	return 0;
}

int printer_print(const struct printer *printer, const void *data, size_t size, char **ret_text)
{
	CLEANUP_FREE uint8_t *guarded = NULL;
	struct tep_record record = { 0 };
	struct trace_seq seq;
	int r = 0;

	if (size < printer->least_size || size > INT32_MAX)
		return -EBADMSG;
	guarded = calloc(1, size + PRINTER_GUARD);
	if (!guarded)
		return -ENOMEM;
	memcpy(guarded, data, size);
	record.data = guarded;
	record.size = (int)size;

	trace_seq_init(&seq);
	tep_print_event(printer->tep, &seq, &record, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&seq);
	*ret_text = seq.state == TRACE_SEQ__GOOD ? strdup(seq.buffer) : NULL;
	if (!*ret_text)
		r = -ENOMEM;
	trace_seq_destroy(&seq);
	return r;
}
