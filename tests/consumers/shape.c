/* Tables of members to fetch arguments and conditions. */
#include "consumers/client/shape.h"

#include "base/checked.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct shape_plan *make(const struct tfan_shape *shape)
{
	struct shape_plan *plan = NULL;
	struct failure failure;
	int rc;

	failure_init(&failure);
	rc = shape_plan_make(shape, &plan, &failure);
	if (rc)
		print_error("%s\n", failure.text);
	assert_int_equal(rc, 0);
	return plan;
}

static void assert_wrong(const struct tfan_shape *shape, const char *words)
{
	struct shape_plan *plan = NULL;
	struct failure failure;

	failure_init(&failure);
	assert_int_equal(shape_plan_make(shape, &plan, &failure), -EINVAL);
	if (!strstr(failure.text, words))
		print_error("%s\n", failure.text);
	assert_non_null(strstr(failure.text, words));
	assert_int_equal(failure.public.category, TFAN_FETCH_ARG);
	assert_null(plan);
}

struct all {
	unsigned char u8;
	signed char s8;
	unsigned short u16;
	short s16;
	unsigned int u32;
	int s32;
	unsigned long u64;
	long long s64;
	uint16_t port;
	uint32_t nibble;
	bool flag, high;
	const char *text;
	const char *name;
	struct tfan_string_address path;
};

static void types_come_from_the_members(void **state)
{
	static const struct tfan_member members[] = {
		{ TFAN_MEMBER(struct all, u8), .fetch = "%ax" },
		{ TFAN_MEMBER(struct all, s8), .fetch = "%ax" },
		{ TFAN_MEMBER(struct all, u16), .fetch = "%ax" },
		{ TFAN_MEMBER(struct all, s16), .fetch = "%ax" },
		{ TFAN_MEMBER(struct all, u32), .fetch = "%ax" },
		{ TFAN_MEMBER(struct all, s32), .fetch = "$retval" },
		{ TFAN_MEMBER(struct all, u64), .fetch = "%ax" },
		{ TFAN_MEMBER(struct all, s64), .fetch = "%ax" },
		{ TFAN_MEMBER(struct all, port), .fetch = "+2($arg2)", .is_big_endian = true },
		{ TFAN_MEMBER(struct all, nibble), .fetch = "%ax", TFAN_BITS(4, 7) },
		{ TFAN_MEMBER(struct all, flag), .fetch = "%ax" },
		{ TFAN_MEMBER(struct all, high), .fetch = "%ax", TFAN_BITS(31, 31) },
		{ TFAN_MEMBER(struct all, text), .fetch = "$arg1" },
		{ TFAN_MEMBER(struct all, name), .fetch = "$arg1", .user_memory = true },
		{ TFAN_MEMBER(struct all, path), .fetch = "+8($arg1)" },
	};
	static const struct tfan_shape shape = TFAN_SHAPE(struct all, members);
	struct shape_plan *plan = make(&shape);

	(void)state;
	assert_string_equal(plan->arguments,
		"u8=%ax:u8 s8=%ax:s8 u16=%ax:u16 s16=%ax:s16 u32=%ax:u32 s32=$retval:s32 u64=%ax:u64 s64=%ax:s64 "
		"port=+2($arg2):u16 nibble=%ax:b4@4/32 flag=%ax:u8 high=%ax:b1@31/32 text=+0($arg1):string "
		"name=+u0($arg1):string path_address=+8($arg1):u64 path=+0(+8($arg1)):string");
	assert_string_equal(plan->condition, "");
	assert_int_equal(plan->member_count, ARRAY_SIZE(members));
	assert_true(plan->members[8].is_big_endian);
	assert_int_equal(plan->members[14].offset, offsetof(struct all, path));
	assert_string_equal(plan->members[14].address_field, "path_address");
	shape_plan_free(plan);
}

static void conditions_must_all_hold(void **state)
{
	static const struct tfan_member members[] = {
		{ TFAN_MEMBER(struct all, s32), .fetch = "%ax", .condition = "s32 < 0 || s32 > 9" },
		{ TFAN_MEMBER(struct all, u8), .fetch = "%bx", .condition = "" },
		{ TFAN_MEMBER(struct all, u16), .fetch = "%cx", .condition = "u16 & 1" },
	};
	struct tfan_shape shape = TFAN_SHAPE(struct all, members);
	struct shape_plan *plan;
	size_t shift = 0;
	char *text;

	(void)state;
	shape.condition = "u8 == 1 || u16 == 1";
	plan = make(&shape);
	assert_string_equal(plan->condition, "(s32 < 0 || s32 > 9) && (u16 & 1) && (u8 == 1 || u16 == 1)");
	text = shape_join_conditions(plan->condition, "s32 == 3", &shift);
	assert_string_equal(text + shift, "s32 == 3)");
	free(text);
	text = shape_join_conditions("", "a", &shift);
	assert_string_equal(text, "a");
	assert_int_equal(shift, 0);
	free(text);
	text = shape_join_conditions("a", "", &shift);
	assert_string_equal(text, "a");
	free(text);
	shape_plan_free(plan);
}

struct address {
	uint16_t family, port;
};
struct connection {
	struct address from, to;
	int fd;
};

static const struct tfan_member address_members[] = {
	{ TFAN_MEMBER(struct address, family), .fetch = "+0({1})", .condition = "{0}_family == 2" },
	{ TFAN_MEMBER(struct address, port), .fetch = "+2({1})", .is_big_endian = true, .condition = "{2}" },
};

static void groups_have_prefixes_and_expressions(void **state)
{
	static const struct tfan_member members[] = {
		{ TFAN_GROUP(struct connection, from, address_members), .fetch = "$arg1,{from}_port != 0" },
		{ TFAN_GROUP(struct connection, to, address_members), .fetch = "+8($arg2),to_port > 1",
			.condition = "{0}_port < 9" },
		{ TFAN_MEMBER(struct connection, fd), .fetch = "$arg3" },
	};
	static const struct tfan_shape shape = TFAN_SHAPE(struct connection, members);
	struct shape_plan *plan = make(&shape);

	(void)state;
	assert_string_equal(plan->arguments, "from_family=+0($arg1):u16 from_port=+2($arg1):u16 "
		"to_family=+0(+8($arg2)):u16 to_port=+2(+8($arg2)):u16 fd=$arg3:s32");
	assert_string_equal(plan->condition, "(from_family == 2) && ({from}_port != 0) && (to_port < 9) && "
		"(to_family == 2) && (to_port > 1)");
	assert_int_equal(plan->members[3].offset, offsetof(struct connection, to.port));
	shape_plan_free(plan);
}

static void fields_that_the_event_has_already(void **state)
{
	static const struct tfan_member members[] = {
		{ TFAN_MEMBER(struct all, s32), .field = "prev_pid" },
		{ TFAN_MEMBER(struct all, text) },
	};
	static const struct tfan_shape shape = TFAN_SHAPE(struct all, members);
	struct shape_plan *plan = make(&shape);

	(void)state;
	assert_string_equal(plan->arguments, "");
	assert_string_equal(plan->members[0].field, "prev_pid");
	assert_string_equal(plan->members[1].field, "text");
	shape_plan_free(plan);
}

/* A caller that was built when struct tfan_member was shorter. */
static void rows_of_another_version(void **state)
{
	struct {
		uint8_t bytes[offsetof(struct tfan_member, condition)];
	} old[2];
	const struct tfan_member first = { TFAN_MEMBER(struct all, u8), .fetch = "%ax", .condition = "not read" };
	const struct tfan_member second = { TFAN_MEMBER(struct all, s8), .fetch = "%bx" };
	struct tfan_shape shape = {
		.size = sizeof(struct all), .member_size = sizeof(old[0]), .member_count = 2,
		.members = (const struct tfan_member *)(const void *)old,
	};
	struct shape_plan *plan;

	(void)state;
	memcpy(old[0].bytes, &first, sizeof(old[0]));
	memcpy(old[1].bytes, &second, sizeof(old[1]));
	plan = make(&shape);
	assert_string_equal(plan->arguments, "u8=%ax:u8 s8=%bx:s8");
	assert_string_equal(plan->condition, "");
	shape_plan_free(plan);
}

static void tables_that_are_wrong(void **state)
{
	static const struct {
		struct tfan_member member;
		const char *words;
	} rows[] = {
		{ { .name = "x", .size = 4, .fetch = "1" }, "no kind" },
		{ { .size = 4, .kind = TFAN_MEMBER_SIGNED }, "without a name" },
		{ { .name = "x", .size = 3, .kind = TFAN_MEMBER_SIGNED }, "no size of its kind" },
		{ { .name = "x", .size = 4, .kind = TFAN_MEMBER_STRING }, "no size of its kind" },
		{ { .name = "x", .size = 8, .kind = TFAN_MEMBER_STRING_ADDRESS }, "no size of its kind" },
		{ { .name = "x", .size = 4, .offset = sizeof(struct all) - 3, .kind = TFAN_MEMBER_SIGNED }, "outside" },
		{ { .name = "x", .size = 4, .offset = SIZE_MAX, .kind = TFAN_MEMBER_SIGNED }, "outside" },
		{ { TFAN_MEMBER(struct all, s32), .fetch = "1", TFAN_BITS(8, 32) }, "not inside" },
		{ { TFAN_MEMBER(struct all, s32), TFAN_BITS(0, 3) }, "not inside" },
		{ { TFAN_MEMBER(struct all, s32), .fetch = "1", TFAN_BITS(0, 3), .is_big_endian = true }, "one or the other" },
		{ { TFAN_MEMBER(struct all, text), .fetch = "1", .is_big_endian = true }, "are for integers" },
		{ { TFAN_MEMBER(struct all, s32), .fetch = "{1}" }, "names {1}" },
		{ { TFAN_MEMBER(struct all, s32), .fetch = "1", .condition = "{2} > 1" }, "names {2}" },
		{ { .name = "abcdefghijklmnopqrstuvwxyz012345", .size = 4, .kind = TFAN_MEMBER_SIGNED }, "longer than the 31" },
		{ { .name = "abcdefghijklmnopqrstuvwxyz01234", .size = sizeof(struct tfan_string_address), .fetch = "1",
			.kind = TFAN_MEMBER_STRING_ADDRESS }, "_address is longer" },
	};
	struct tfan_member self[1];
	struct tfan_shape shape = { .size = sizeof(struct all), .member_size = sizeof(struct tfan_member), .member_count = 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		shape.members = &rows[i].member;
		assert_wrong(&shape, rows[i].words);
	}
	/* A group that holds itself ends. */
	self[0] = (struct tfan_member){ .name = "g", .size = 8, .kind = TFAN_MEMBER_GROUP, .group = self, .group_count = 1 };
	shape.members = self;
	assert_wrong(&shape, "more than 8 groups");
	self[0].fetch = "1,2,3,4,5,6,7,8,9,10";
	assert_wrong(&shape, "more than 9 expressions");
	shape.member_size = 8;
	assert_wrong(&shape, "TFAN_SHAPE");
	shape.member_size = sizeof(struct tfan_member);
	shape.size = 0;
	assert_wrong(&shape, "TFAN_SHAPE");
}

static void more_members_than_a_probe_has(void **state)
{
	static struct tfan_member members[SHAPE_MEMBERS_MAX + 1];
	static char names[SHAPE_MEMBERS_MAX + 1][8];
	struct tfan_shape shape = TFAN_SHAPE(struct all, members);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		(void)snprintf(names[i], sizeof(names[i]), "m%zu", i);
		members[i] = (struct tfan_member){ TFAN_MEMBER(struct all, u8), .fetch = "1" };
		members[i].name = names[i];
	}
	assert_wrong(&shape, "one too many");
	shape.member_count--;
	shape_plan_free(make(&shape));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_come_from_the_members), cmocka_unit_test(conditions_must_all_hold),
		cmocka_unit_test(groups_have_prefixes_and_expressions), cmocka_unit_test(fields_that_the_event_has_already),
		cmocka_unit_test(rows_of_another_version), cmocka_unit_test(tables_that_are_wrong),
		cmocka_unit_test(more_members_than_a_probe_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
