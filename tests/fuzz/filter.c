/* A filter's text, and behind its first NUL an event's payload: parse, compile, match, write for
 * the kernel, show. What is shown has to be the same filter, and what the kernel gets may lose
 * nothing. */
#include "tests/router/filter_events.h"
#include "tests/support/fuzz.h"

#include <stdio.h>

static struct filter_program *compile(const struct schema *schema, const char *text, size_t size)
{
	const struct filter_environment environment = { .probe = "open" };
	struct filter_program *program = NULL;
	struct filter_failure failure;
	struct filter_ast *ast;
	char shown[512];
	int error = filter_parse(text, size, &ast, &failure);

	if (!error) {
		error = filter_compile(ast, schema, &environment, &program, &failure);
		filter_ast_release(ast);
	}
	if (!error)
		return program;
	/* A failure is in the text, or right behind it. */
	if (failure.position < 0 || (size_t)failure.position > size || failure.length < 1 ||
		!failure.message[0])
		abort();
	(void)filter_failure_show(&failure, "a text", shown, sizeof(shown));
	return NULL;
}

static void check(const struct schema *schema, struct filter_program *program,
	const struct filter_event *event)
{
	struct filter_program *again;
	bool wanted = filter_match(program, event), exact;
	char *text;

	if (filter_program_show(program, &text))
		abort();
	again = compile(schema, text, strlen(text));
	/* Longer than a filter may be: sets are shown in full, and numbers in decimal. */
	if (!again && strlen(text) < FILTER_TEXT_MAX / 2)
		abort();
	if (again && filter_match(again, event) != wanted)
		abort();
	filter_program_release(again);
	free(text);
	if (filter_kernel_text(program, FILTER_KERNEL_TEXT_MAX, &text, &exact) ||
		strlen(text) >= FILTER_KERNEL_TEXT_MAX)
		abort();
	again = strcmp(text, "0") != 0 ? compile(schema, text, strlen(text))
				       : compile(schema, "", 0);
	if (!again || (wanted && !filter_match(again, event)))
		abort();
	filter_program_release(again);
	free(text);
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	static struct samples samples;
	size_t text_size = strnlen((const char *)bytes, size);
	struct filter_program *program;
	struct filter_event event;

	if (!samples.catalog && samples_create(&samples))
		abort();
	event = samples.at[0].event;
	if (text_size < size) {
		event.payload = bytes + text_size + 1;
		event.size = size - text_size - 1;
	}
	program = compile(samples.schema, (const char *)bytes, text_size);
	if (program)
		check(samples.schema, program, &event);
	filter_program_release(program);
}
