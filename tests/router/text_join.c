#include "router/text_join.h"

#include "base/checked.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PREFIX "            bash-77    [000] ..... 10.000001: "
#define FORGED "            evil-1     [001] ..... 10.000001: "
#define CANARY "tfc_0_k3y=0"

/* What was passed on, as text: a line per event, "comm-pid name{body}" and its marks, newlines as '/'. */
struct seen {
	char text[65536];
	size_t size;
	int fail_at;
};

static void see(struct seen *seen, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		assert_true(seen->size + 1 < sizeof(seen->text));
		seen->text[seen->size++] = text[i] == '\n' ? '/' : text[i];
	}
	seen->text[seen->size] = '\0';
}

static void see_piece(struct seen *seen, const struct text_piece *piece)
{
	see(seen, piece->at, piece->size);
}

static void see_text(struct seen *seen, const char *text)
{
	see(seen, text, strlen(text));
}

static bool is_named(const struct text_line *line, const char *name)
{
	return line->name.size == strlen(name) && memcmp(line->name.at, name, line->name.size) == 0;
}

static bool ends_with(const struct text_piece *piece, const char *end)
{
	size_t size = strlen(end);

	return piece->size >= size && memcmp(piece->at + piece->size - size, end, size) == 0;
}

/* As a router would: "own" is a probe with a canary, "exec" a tracepoint that ends with pid=7, "number" has
 * no strings, and of the rest nothing is known. */
static int verdict_of(const struct text_line *line)
{
	if (is_named(line, "own"))
		return ends_with(&line->body, " " CANARY) ? TEXT_JOIN_SURE : TEXT_JOIN_OPEN;
	if (is_named(line, "exec"))
		return ends_with(&line->body, " pid=7") ? TEXT_JOIN_DONE : TEXT_JOIN_OPEN;
	return is_named(line, "number") ? TEXT_JOIN_SURE : TEXT_JOIN_DONE;
}

static int emit(void *context, const struct text_joined *joined)
{
	static const char *const kinds[] = { [TEXT_LOST] = "lost", [TEXT_STACK] = "stack", [TEXT_COMMENT] = "comment",
		[TEXT_CONTINUATION] = "more", [TEXT_EMPTY] = "empty", [TEXT_GRAPH] = "graph", [TEXT_TOO_BIG] = "big" };
	const struct text_line *line = &joined->line;
	int verdict = line->kind == TEXT_EVENT ? verdict_of(line) : TEXT_JOIN_DONE;
	struct seen *seen = context;
	char pid[16];

	if (seen->fail_at && --seen->fail_at == 0)
		return -EIO;
	if (verdict == TEXT_JOIN_OPEN && !joined->last)
		return verdict;
	if (line->kind != TEXT_EVENT) {
		see_text(seen, kinds[line->kind]);
		see_text(seen, "{");
		see_piece(seen, &line->whole);
	} else {
		see_piece(seen, &line->comm);
		(void)snprintf(pid, sizeof(pid), "-%d ", line->pid);
		see_text(seen, pid);
		see_piece(seen, &line->name);
		see_text(seen, "{");
		see_piece(seen, &line->body);
	}
	see_text(seen, "}");
	if (joined->swallowed)
		see_text(seen, " swallowed");
	if (joined->doubtful)
		see_text(seen, " doubtful");
	if (joined->partial)
		see_text(seen, " partial");
	see_text(seen, "\n");
	seen->text[seen->size - 1] = '\n';
	return verdict;
}

static struct seen *run(const char *stream, size_t size, size_t piece)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	struct text_join join;

	assert_non_null(seen);
	text_join_init(&join);
	for (size_t at = 0; at < size; at += piece)
		assert_int_equal(text_join_feed(&join, stream + at, size - at < piece ? size - at : piece, emit, seen), 0);
	assert_int_equal(text_join_end(&join, emit, seen), 0);
	assert_int_equal(text_join_end(&join, emit, seen), 0);
	text_join_release(&join);
	return seen;
}

/* The same whatever the pieces are in which the stream comes. */
static void expect(const char *stream, const char *expected)
{
	static const size_t pieces[] = { 1, 2, 3, 7, 16, 61, 1 << 20 };

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		struct seen *seen = run(stream, strlen(stream), pieces[i]);

		assert_string_equal(seen->text, expected);
		free(seen);
	}
}

static void plain_lines(void **state)
{
	(void)state;
	expect("# tracer: nop\n#\n" PREFIX "a: 1\n" PREFIX "a: 2\nCPU:1 [LOST 3 EVENTS]\n" PREFIX "<stack trace>\n => f\n"
		" => a_function_with_a_long_name\n[LINE TOO BIG]\n 3)   0.081 us    |  f();\n" PREFIX "a: 3",
		"comment{# tracer: nop}\ncomment{#}\nbash-77 a{1}\nbash-77 a{2}\nlost{CPU:1 [LOST 3 EVENTS]}\n"
		"bash-77 {<stack trace>}\nstack{ => f}\nstack{ => a_function_with_a_long_name}\nbig{[LINE TOO BIG]}\n"
		"graph{ 3)   0.081 us    |  f();}\nbash-77 a{3}\n");
	expect("", "");
	expect("\n", "empty{}\n");
	expect("no event\n" PREFIX "a: 1\n", "more{no event}\nbash-77 a{1}\n");
}

static void text_of_several_lines(void **state)
{
	(void)state;
	expect(PREFIX "a: x =0x34\nsome = 000\nxyz = 0x0\n" PREFIX "number: 1\n",
		"bash-77 a{x =0x34/some = 000/xyz = 0x0}\nbash-77 number{1} doubtful\n");
	/* Empty lines count only between others. */
	expect(PREFIX "a: x\n\ny\n\n\n" PREFIX "number: 1\n\n", "bash-77 a{x//y}\nbash-77 number{1} doubtful\n");
	expect(PREFIX "number: x\ny\n" PREFIX "number: 1\n", "bash-77 number{x/y}\nbash-77 number{1}\n");
}

/* As this kernel prints threads called "a\nb", "\n", "\n\n", "y\n-5 [000]". */
static void names_with_newlines(void **state)
{
	(void)state;
	expect("             a\nb-14784   [000] .....  1443.406727: a: 1\n", "a/b-14784 a{1}\n");
	expect("               \n-14777   [001] .....  1443.406931: a: 1\n", "/-14777 a{1}\n");
	expect("              \n\n-14785   [001] .....  1443.407183: a: 1\n", "//-14785 a{1}\n");
	expect("      y\n-5 [000]-14787   [000] .....  1443.406813: a: 1\n", "y/-5 [000]-14787 a{1}\n");
	expect(PREFIX "a: 1\n            =>\nx-12    [000] .....  1443.406813: a: 2\n", "bash-77 a{1}\n=>/x-12 a{2}\n");
	/* After an event, and twice. */
	expect(PREFIX "number: 1\n             a\nb-14784   [000] .....  1443.406727: number: 2\n"
		"             a\nb-14784   [000] .....  1443.406732: number: 3\n",
		"bash-77 number{1}\na/b-14784 number{2}\na/b-14784 number{3}\n");
	/* More of the event above, then a name. */
	expect(PREFIX "number: 1\n x\n             a\nb-14784   [000] .....  1443.406727: number: 2\n",
		"bash-77 number{1/ x}\na/b-14784 number{2}\n");
	/* One too wide, one too narrow, one that isn't padded: no names. */
	expect(PREFIX "number: 1\n              a\nb-14784   [000] .....  1443.406727: number: 2\n",
		"bash-77 number{1/              a}\nb-14784 number{2}\n");
	expect(PREFIX "number: 1\n            a\nb-14784   [000] .....  1443.406727: number: 2\n",
		"bash-77 number{1/            a}\nb-14784 number{2}\n");
	expect(PREFIX "number: 1\nxxxxxxxxxxxxxa\nb-14784   [000] .....  1443.406727: number: 2\n",
		"bash-77 number{1/xxxxxxxxxxxxxa}\nb-14784 number{2}\n");
}

/* A string that holds a newline and a line made to look like an event. */
static void forged_lines(void **state)
{
	(void)state;
	expect(PREFIX "own: s=\"x\n" FORGED "own: s=\"forged\" tfc_0_guess=0\nCPU:0 [LOST 9 EVENTS]\n => f\n# c\n\" " CANARY "\n"
		PREFIX "number: 1\n",
		"bash-77 own{s=\"x/" FORGED "own: s=\"forged\" tfc_0_guess=0/CPU:0 [LOST 9 EVENTS]/ => f/# c/\" " CANARY "} swallowed\n"
		"bash-77 number{1}\n");
	/* Without a canary the end is a guess, and what follows may be forged. */
	expect(PREFIX "exec: x\n" FORGED "exec: y pid=7\n" FORGED "exec: z pid=7\n",
		"bash-77 exec{x/" FORGED "exec: y pid=7} swallowed\nevil-1 exec{z pid=7} doubtful\n");
	expect(PREFIX "exec: x\nmore pid=7\n" FORGED "exec: z pid=7\n",
		"bash-77 exec{x/more pid=7}\nevil-1 exec{z pid=7} doubtful\n");
}

static void doubt_ends(void **state)
{
	char *stream = malloc(65536), *at = stream;
	struct seen *seen;
	size_t doubtful = 0, events = 0;

	(void)state;
	assert_non_null(stream);
	at += sprintf(at, PREFIX "exec: x\ny pid=7\n");
	for (int i = 0; i < 400; i++)
		at += sprintf(at, PREFIX "number: %03d\n", i);
	seen = run(stream, (size_t)(at - stream), 4096);
	for (const char *p = seen->text; (p = strstr(p, "number{")) != NULL; p++) {
		const char *end = strchr(p, '\n');

		events++;
		if (memmem(p, (size_t)(end - p), "doubtful", 8)) {
			doubtful++;
			/* Without a gap: those that lie within reach of the string. */
			assert_int_equal(doubtful, events);
		}
	}
	assert_int_equal(events, 400);
	assert_true(doubtful >= TEXT_EVENT_MAX / 70 && doubtful <= TEXT_EVENT_MAX / 50);
	free(seen);
	free(stream);
}

/* A string without an end: the events behind it are passed on, as doubtful, and none is lost. */
static void string_without_end(void **state)
{
	char *stream = malloc(65536), *at = stream;
	struct seen *seen;
	unsigned int next = 0;

	(void)state;
	assert_non_null(stream);
	at += sprintf(at, PREFIX "own: s=\"cut\nmore\n");
	for (int i = 0; i < 400; i++)
		at += sprintf(at, PREFIX "number: %03d\n", i);
	seen = run(stream, (size_t)(at - stream), 100);
	assert_memory_equal(seen->text, "bash-77 own{s=\"cut/more} partial\n", 33);
	for (const char *p = seen->text; (p = strstr(p, "number{")) != NULL; p++, next++)
		assert_int_equal(strtoul(p + 7, NULL, 10), next);
	assert_int_equal(next, 400);
	assert_memory_equal(strstr(seen->text, "number{000}"), "number{000} doubtful\n", 21);
	assert_null(strstr(strstr(seen->text, "number{399}"), "doubtful"));
	free(seen);
	free(stream);
	expect(PREFIX "own: s=\"x\n" PREFIX "own: s=\"y\n" PREFIX "number: 1\n",
		"bash-77 own{s=\"x} partial\nbash-77 own{s=\"y} doubtful\nbash-77 number{1} doubtful\n");
}

static void too_long_for_an_event(void **state)
{
	const size_t lines = 3 * (size_t)TEXT_LINE_MAX / 100;
	char *stream = malloc(lines * 100 + 200), *at = stream;
	struct text_join join;
	struct seen *seen = calloc(1, sizeof(*seen));

	(void)state;
	assert_non_null(stream);
	assert_non_null(seen);
	at += sprintf(at, PREFIX "number: 1\n");
	for (size_t i = 0; i < lines; i++) {
		memset(at, 'x', 99);
		at[99] = '\n';
		at += 100;
	}
	text_join_init(&join);
	/* The seventh is the first line that stands alone; until then one event was shown, with all it could hold. */
	seen->fail_at = 2;
	assert_int_equal(text_join_feed(&join, stream, (size_t)(at - stream), emit, seen), -EIO);
	assert_true(seen->size > TEXT_LINE_MAX - 200 && seen->size < TEXT_LINE_MAX + 200);
	assert_non_null(strstr(seen->text, "} partial\n"));
	text_join_release(&join);
	free(seen);
	free(stream);
}

/* Between reads that emptied the pipe nothing waits; in the middle of a line it does. */
static void flush(void **state)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	struct text_join join;
	static const char first[] = PREFIX "number: 1\n" PREFIX "number: 2\n", second[] = PREFIX "number: 3\n";

	(void)state;
	assert_non_null(seen);
	text_join_init(&join);
	assert_int_equal(text_join_feed(&join, first, sizeof(first) - 1, emit, seen), 0);
	assert_string_equal(seen->text, "bash-77 number{1}\n");
	assert_int_equal(text_join_flush(&join, emit, seen), 0);
	assert_string_equal(seen->text, "bash-77 number{1}\nbash-77 number{2}\n");
	assert_int_equal(text_join_feed(&join, second, 10, emit, seen), 0);
	assert_int_equal(text_join_flush(&join, emit, seen), 0);
	assert_int_equal(text_join_feed(&join, second + 10, sizeof(second) - 11, emit, seen), 0);
	assert_int_equal(text_join_flush(&join, emit, seen), 0);
	assert_string_equal(seen->text, "bash-77 number{1}\nbash-77 number{2}\nbash-77 number{3}\n");
	text_join_release(&join);
	free(seen);
}

/* What the kernel has counted as read, and has not handed out to the last byte. */
static void held(void **state)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	struct text_join join;
	static const char first[] = PREFIX "number: 1\n" PREFIX "number: 2\n", second[] = PREFIX "number: 3\nmore of it\n";
	const size_t newline = strlen(PREFIX "number: 3");

	(void)state;
	assert_non_null(seen);
	text_join_init(&join);
	assert_int_equal(text_join_held(&join), 0);
	assert_int_equal(text_join_feed(&join, first, sizeof(first) - 1, emit, seen), 0);
	assert_int_equal(text_join_held(&join), 1);
	assert_int_equal(text_join_feed(&join, second, newline, emit, seen), 0);
	assert_int_equal(text_join_flush(&join, emit, seen), 0);
	assert_string_equal(seen->text, "bash-77 number{1}\n");
	assert_int_equal(text_join_held(&join), 2);
	/* A line without a shape of its own is no event. */
	assert_int_equal(text_join_feed(&join, second + newline, 4, emit, seen), 0);
	assert_int_equal(text_join_held(&join), 1);
	assert_int_equal(text_join_feed(&join, second + newline + 4, sizeof(second) - 1 - newline - 4, emit, seen), 0);
	assert_int_equal(text_join_flush(&join, emit, seen), 0);
	assert_int_equal(text_join_held(&join), 0);
	assert_string_equal(seen->text, "bash-77 number{1}\nbash-77 number{2}\nbash-77 number{3/more of it}\n");
	text_join_release(&join);
	free(seen);
}

static void failure_is_passed_on(void **state)
{
	static const char stream[] = PREFIX "own: s=\"x\n" PREFIX "number: 1\n# c\n" PREFIX "number: 2\n";

	(void)state;
	for (int fail_at = 1; fail_at <= 6; fail_at++) {
		struct seen *seen = calloc(1, sizeof(*seen));
		struct text_join join;
		int r;

		assert_non_null(seen);
		text_join_init(&join);
		seen->fail_at = fail_at;
		r = text_join_feed(&join, stream, sizeof(stream) - 1, emit, seen);
		if (r == 0)
			r = text_join_end(&join, emit, seen);
		assert_int_equal(r, -EIO);
		text_join_release(&join);
		free(seen);
	}
}

/* A marker of 5000 bytes comes in two pieces, each an event. */
static void cut_marker(void **state)
{
	char *stream = malloc(16384), *at = stream;
	struct seen *seen;

	(void)state;
	assert_non_null(stream);
	at += sprintf(at, PREFIX "tracing_mark_write: ");
	memset(at, 'a', 4054);
	at += 4054;
	at += sprintf(at, "\n" PREFIX "tracing_mark_write: ");
	memset(at, 'b', 946);
	at += 946;
	at += sprintf(at, "\n");
	seen = run(stream, (size_t)(at - stream), 1 << 20);
	assert_non_null(strstr(seen->text, "aaa} partial\n"));
	assert_non_null(strstr(seen->text, "bbb}\n"));
	free(seen);
	free(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_lines),
		cmocka_unit_test(text_of_several_lines),
		cmocka_unit_test(names_with_newlines),
		cmocka_unit_test(forged_lines),
		cmocka_unit_test(doubt_ends),
		cmocka_unit_test(string_without_end),
		cmocka_unit_test(too_long_for_an_event),
		cmocka_unit_test(flush),
		cmocka_unit_test(held),
		cmocka_unit_test(failure_is_passed_on),
		cmocka_unit_test(cut_marker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
