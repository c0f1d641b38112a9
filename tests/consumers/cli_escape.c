/* Foreign bytes as JSON and text: what is shown, and that it can be read back. */
#include "consumers/cli/escape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Of any bytes whose length is `size`. */
static void check_bytes(void (*escape)(struct writer *, const void *, size_t), const void *bytes, size_t size,
	const char *expected)
{
	struct writer writer;

	assert_int_equal(writer_open_memory(&writer), 0);
	escape(&writer, bytes, size);
	assert_int_equal(writer_error(&writer), 0);
	assert_int_equal(writer.used, strlen(expected));
	assert_memory_equal(writer.buffer, expected, writer.used);
	writer_close(&writer);
}

#define check_json(literal, expected) check_bytes(escape_json, literal, sizeof(literal) - 1, expected)
#define check_text(literal, expected) check_bytes(escape_text, literal, sizeof(literal) - 1, expected)

static void json_of_ordinary_text_is_the_text(void **state)
{
	(void)state;
	check_json("", "");
	check_json("/etc/hosts", "/etc/hosts");
	check_json("a b=c", "a b=c");
	check_json("\xc3\xbc \xe2\x82\xac \xf0\x9f\x90\xa7", "\xc3\xbc \xe2\x82\xac \xf0\x9f\x90\xa7");
}

static void json_escapes_what_json_must(void **state)
{
	(void)state;
	check_json("\"\\", "\\\"\\\\");
	check_json("\n\r\t", "\\n\\r\\t");
	check_json("\x01\x1f\x7f", "\\u0001\\u001f\\u007f");
	check_json("a\0b", "a\\u0000b");
	/* What a terminal might obey although JSON allows it: C1, the direction of writing, line ends. */
	check_json("\xc2\x9b", "\\u009b");
	check_json("\xe2\x80\xae", "\\u202e");
	check_json("\xe2\x80\xa8", "\\u2028");
}

static void json_keeps_bytes_that_are_no_characters(void **state)
{
	(void)state;
	check_json("\xff", "\\uefff");
	check_json("a\x80z", "a\\uef80z");
	/* Overlong, surrogate, past the end, cut off. */
	check_json("\xc0\xaf", "\\uefc0\\uefaf");
	check_json("\xed\xa0\x80", "\\uefed\\uefa0\\uef80");
	check_json("\xf4\x90\x80\x80", "\\ueff4\\uef90\\uef80\\uef80");
	check_json("\xe2\x82", "\\uefe2\\uef82");
	check_json("\xe2\x82x", "\\uefe2\\uef82x");
}

static void json_of_the_escape_range_itself_is_bytes_too(void **state)
{
	(void)state;
	/* U+EF80 and U+EFFF, and their neighbours, which are ordinary. */
	check_json("\xee\xbe\x80", "\\uefee\\uefbe\\uef80");
	check_json("\xee\xbf\xbf", "\\uefee\\uefbf\\uefbf");
	check_json("\xee\xbd\xbf", "\xee\xbd\xbf");
	check_json("\xef\x80\x80", "\xef\x80\x80");
}

static void text_of_one_word_is_the_word(void **state)
{
	(void)state;
	check_text("/etc/hosts", "/etc/hosts");
	check_text("kworker/0:1-events", "kworker/0:1-events");
	check_text("(fault)", "(fault)");
	check_text("M\xc3\xbcller", "M\xc3\xbcller");
}

static void text_of_more_stands_in_quotes(void **state)
{
	(void)state;
	check_text("", "\"\"");
	check_text("Web Content", "\"Web Content\"");
	check_text("a=b", "\"a=b\"");
	check_text("say \"x\\y\"", "\"say \\\"x\\\\y\\\"\"");
	check_text("\"", "\"\\\"\"");
}

static void text_shows_no_control_characters(void **state)
{
	(void)state;
	check_text("a\nb\tc\r", "\"a\\nb\\tc\\r\"");
	check_text("\x1b[2J\x7f", "\"\\x1b[2J\\x7f\"");
	check_text("\xff", "\"\\xff\"");
	check_text("\xc2\x9b" "31m", "\"\\xc2\\x9b31m\"");
	check_text("\xe2\x80\xae", "\"\\xe2\\x80\\xae\"");
}

static void long_strings_are_whole(void **state)
{
	static char bytes[200000], expected[4 * 200000 + 1];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	memset(expected, 'x', sizeof(bytes));
	check_bytes(escape_json, bytes, sizeof(bytes), expected);
	memset(bytes, '"', sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		memcpy(expected + 2 * i, "\\\"", 2);
	expected[2 * sizeof(bytes)] = '\0';
	check_bytes(escape_json, bytes, sizeof(bytes), expected);
}

static void plain_counts_columns(void **state)
{
	struct writer writer;

	(void)state;
	assert_int_equal(writer_open_memory(&writer), 0);
	assert_int_equal(escape_plain(&writer, "a \"\xc3\xbc\x01", 6), 8);
	assert_int_equal(writer.used, 9);
	assert_memory_equal(writer.buffer, "a \"\xc3\xbc\\x01", 9);
	writer_close(&writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_of_ordinary_text_is_the_text),
		cmocka_unit_test(json_escapes_what_json_must),
		cmocka_unit_test(json_keeps_bytes_that_are_no_characters),
		cmocka_unit_test(json_of_the_escape_range_itself_is_bytes_too),
		cmocka_unit_test(text_of_one_word_is_the_word),
		cmocka_unit_test(text_of_more_stands_in_quotes),
		cmocka_unit_test(text_shows_no_control_characters),
		cmocka_unit_test(long_strings_are_whole),
		cmocka_unit_test(plain_counts_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
