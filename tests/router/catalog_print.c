/* Events printed by libtraceevent. */
#include "tests/router/catalog_fixture.h"

#include "base/checked.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

static void expect_print(bool big_endian, unsigned int long_size, const char *format, const uint8_t *payload, size_t size,
	const char *expected)
{
	struct catalog *catalog = catalog_of(big_endian, long_size);
	CLEANUP_FREE char *text = NULL;

	assert_int_equal(catalog_print(catalog, add(catalog, "sys", format), payload, size, &text), 0);
	assert_string_equal(text, expected);
	catalog_release(catalog);
}

static void newlines_casts_and_characters_in_print_formats(void **state)
{
	static const uint8_t payload[16] = { 3, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 'b' };

	(void)state;
	expect_print(false, 8, EVENT("ev", 3, ONE_FIELD("u32"), "\"a=%d\",\nREC->a"), payload, sizeof(payload), "a=-1");
	expect_print(false, 8, EVENT("ev", 3, ONE_FIELD("u32"), "\"a=%llu\", (unsigned long long)REC->a"), payload,
		sizeof(payload), "a=4294967295");
	expect_print(false, 8, EVENT("ev", 3, "\tfield:char c;\toffset:12;\tsize:1;\tsigned:0;\n",
		"\"c=%s\", REC->c == 'b' ? \"bee\" : \"other\""), payload, sizeof(payload), "c=bee");
}

/* sizeof is the traced machine's; the bracket too many is the kernel's own. */
static void sizes_in_print_formats(void **state)
{
	static const char format[] = EVENT("ev", 3, "\tfield:long long s8;\toffset:8;\tsize:8;\tsigned:1;\n",
		"\"int=%d long=%d s8=%d\", sizeof(int), sizeof(long), sizeof(REC->s8))");
	static const uint8_t little[16] = { 3 }, big[16] = { 0, 3 };

	(void)state;
	expect_print(false, 8, format, little, sizeof(little), "int=4 long=8 s8=8");
	expect_print(false, 4, format, little, sizeof(little), "int=4 long=4 s8=8");
	expect_print(true, 8, format, big, sizeof(big), "int=4 long=8 s8=8");
	expect_print(true, 4, format, big, sizeof(big), "int=4 long=4 s8=8");
}

struct mask_case {
	uint64_t mask;
	const char *text;
};

/* As libtraceevent's own tests have it: empty, full, every other, and one bit in each of two bytes, in
 * both byte orders. */
static void cpu_masks(void **state)
{
	static const char format[] = EVENT("ipi_send_cpumask", 3,
		"\tfield:__data_loc cpumask_t *[] cpumask;\toffset:8;\tsize:4;\tsigned:0;\n", "\"cpumask=%s\", __get_cpumask(cpumask)");
	const struct mask_case cases[] = {
		{ 0, "cpumask=" },
		{ UINT64_MAX, "cpumask=0-63" },
		{ 0x8001, "cpumask=0,15" },
		{ 0x06, "cpumask=1-2" },
		{ UINT64_C(1) << 63, "cpumask=63" },
		{ 0xf5, "cpumask=0,2,4-7" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t little[24] = { 3, 0, 0, 0, 0, 0, 0, 0, 16, 0, 8, 0 }, big[24] = { 0, 3, 0, 0, 0, 0, 0, 0, 0, 8, 0, 16 };

		for (int byte = 0; byte < 8; byte++) {
			little[16 + byte] = (uint8_t)(cases[i].mask >> 8 * byte);
			big[23 - byte] = (uint8_t)(cases[i].mask >> 8 * byte);
		}
		expect_print(false, 8, format, little, sizeof(little), cases[i].text);
		expect_print(true, 8, format, big, sizeof(big), cases[i].text);
	}
}

static void printing_uses_the_kernels_format_strings(void **state)
{
	static const char format[] = EVENT("bprint", 6,
		"\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
		"\tfield:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;\n"
		"\tfield:u32 buf[];\toffset:24;\tsize:0;\tsigned:0;\n", "\"%ps: %s\", (void *)REC->ip, REC->fmt");
	static const char formats[] = "0x1000 : \"one %d\\n\"\n0x2000 : \"two %d %s\"\n";
	static const uint8_t payload[32] = { 6, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0, 0, 0, 0, 0, 0, 0,
		0x00, 0x10, 0, 0, 0, 0, 0, 0, 42, 0, 0, 0 };
	struct catalog *catalog = catalog_of(false, 8);
	struct catalog_event *event = add(catalog, "ftrace", format);
	char *text = NULL;

	(void)state;
	assert_int_equal(catalog_print(catalog, event, payload, sizeof(payload), &text), 0);
	assert_null(strstr(text, "one"));
	free(text);
	/* They may come after the event. */
	assert_int_equal(catalog_add_printk_formats(catalog, formats, strlen(formats)), 0);
	assert_int_equal(catalog_print(catalog, event, payload, sizeof(payload), &text), 0);
	assert_non_null(strstr(text, "one 42"));
	free(text);
	assert_int_equal(catalog_add_printk_formats(catalog, "a\0b", 3), -EBADMSG);
	catalog_release(catalog);
}

static void a_short_event_is_not_printed(void **state)
{
	static const uint8_t payload[16] = { 3 };
	struct catalog *catalog = catalog_of(false, 8);
	struct catalog_event *event = add(catalog, "sys", EVENT("ev", 3, ONE_FIELD("u32"), "\"%d\", REC->a"));
	char *text = NULL;

	(void)state;
	for (size_t size = 0; size < 12; size++)
		assert_int_equal(catalog_print(catalog, event, payload, size, &text), -EBADMSG);
	assert_null(text);
	catalog_release(catalog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newlines_casts_and_characters_in_print_formats),
		cmocka_unit_test(sizes_in_print_formats),
		cmocka_unit_test(cpu_masks),
		cmocka_unit_test(printing_uses_the_kernels_format_strings),
		cmocka_unit_test(a_short_event_is_not_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
