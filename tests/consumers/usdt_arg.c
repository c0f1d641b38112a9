/* Operands of static probes, as compilers write them into notes, to fetch arguments. */
#include "consumers/client/usdt_arg.h"

#include "base/checked.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int symbol(void *context, const char *name, int64_t *ret)
{
	(void)context;
	if (strcmp(name, "counter") != 0 && strcmp(name, "table.3") != 0)
		return -ENOENT;
	*ret = 0x4010;
	return 0;
}

struct row {
	const char *text, *fetch, *type, *reason;
};

static void check(unsigned int machine, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct usdt_args args;

		usdt_args_parse(rows[i].text, machine, symbol, NULL, &args);
		assert_int_equal(args.count, 1);
		if (rows[i].reason) {
			if (!args.rows[0].reason)
				print_error("%s gave %s\n", rows[i].text, args.rows[0].fetch);
			assert_non_null(args.rows[0].reason);
			assert_non_null(strstr(args.rows[0].reason, rows[i].reason));
			continue;
		}
		if (args.rows[0].reason)
			print_error("%s: %s\n", rows[i].text, args.rows[0].reason);
		assert_null(args.rows[0].reason);
		assert_string_equal(args.rows[0].fetch, rows[i].fetch);
		assert_string_equal(args.rows[0].type, rows[i].type);
	}
}

static void x86_64(void **state)
{
	static const struct row rows[] = {
		{ "-4@%edi", "%di", "s32", NULL },
		{ "8@%rax", "%ax", "u64", NULL },
		{ "1@%r10b", "%r10", "u8", NULL },
		{ "-2@%si", "%si", "s16", NULL },
		{ "8@-16(%rbp)", "-16(%bp)", "u64", NULL },
		{ "8@(%rsp)", "+0(%sp)", "u64", NULL },
		{ "-4@0x10(%r12)", "+16(%r12)", "s32", NULL },
		{ "-4@$-1", "\\-1", "s32", NULL },
		{ "8@$5", "\\5", "u64", NULL },
		{ "8@counter(%rip)", "+16400(%ip)", "u64", NULL },
		{ "-4@counter+8(%rip)", "+16408(%ip)", "s32", NULL },
		{ "-4@table.3-16(%rip)", "+16384(%ip)", "s32", NULL },
		{ "-4@counter-16401(%rip)", "-1(%ip)", "s32", NULL },
		{ "8@counter", "+16400(%ip)", "u64", NULL },
		{ "%rdi", "%di", "u64", NULL },
		{ "8@missing(%rip)", NULL, NULL, "symbol" },
		{ "8@(%rax,%rbx,8)", NULL, NULL, "index" },
		{ "8@counter(,%rax,8)", NULL, NULL, "index" },
		{ "8@%fs:40", NULL, NULL, "thread-local" },
		{ "8f@%xmm0", NULL, NULL, "floating" },
		{ "8@%xmm0", NULL, NULL, "floating" },
		{ "16@%rdi", NULL, NULL, "size" },
		{ "0@%rdi", NULL, NULL, "size" },
		{ "1@%ah", NULL, NULL, "form" },
		{ "8@%rdi,", NULL, NULL, "form" },
		{ "8@%", NULL, NULL, "form" },
		{ "8@", NULL, NULL, "form" },
		{ "@%rdi", NULL, NULL, "form" },
		{ "8@$x", NULL, NULL, "form" },
		{ "99999999999999999999@%rdi", NULL, NULL, "form" },
		{ "8@99999999999999999999(%rdi)", NULL, NULL, "form" },
	};

	(void)state;
	check(EM_X86_64, rows, ARRAY_SIZE(rows));
}

static void arm64(void **state)
{
	static const struct row rows[] = {
		{ "-4@w0", "%x0", "s32", NULL },
		{ "8@x29", "%x29", "u64", NULL },
		{ "8@x30", "%lr", "u64", NULL },
		{ "8@[sp]", "+0(%sp)", "u64", NULL },
		{ "8@[sp, 16]", "+16(%sp)", "u64", NULL },
		{ "-4@[x29,#-8]", "-8(%x29)", "s32", NULL },
		{ "-4@5", "\\5", "s32", NULL },
		{ "8@-5", "\\-5", "u64", NULL },
		{ "8@[x0, x1]", NULL, NULL, "index" },
		{ "8@[x0, 8", NULL, NULL, "form" },
		{ "8@d0", NULL, NULL, "floating" },
		{ "8@x31", NULL, NULL, "form" },
	};

	(void)state;
	check(EM_AARCH64, rows, ARRAY_SIZE(rows));
}

static void several(void **state)
{
	struct usdt_args args;

	(void)state;
	usdt_args_parse(" -4@%edi  8@-16(%rbp) 8f@%xmm1 1@$3 ", EM_X86_64, NULL, NULL, &args);
	assert_int_equal(args.count, 4);
	assert_string_equal(args.rows[1].fetch, "-16(%bp)");
	assert_non_null(args.rows[2].reason);
	assert_string_equal(args.rows[3].type, "u8");
	usdt_args_parse("8@[sp, 16] 8@[sp, 24]", EM_AARCH64, NULL, NULL, &args);
	assert_int_equal(args.count, 2);
	assert_string_equal(args.rows[1].fetch, "+24(%sp)");
	usdt_args_parse("", EM_X86_64, NULL, NULL, &args);
	assert_int_equal(args.count, 0);
	usdt_args_parse("1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1", EM_X86_64, NULL, NULL, &args);
	assert_int_equal(args.count, USDT_ARGS_MAX);
	usdt_args_parse("4@r3", EM_PPC64, NULL, NULL, &args);
	assert_non_null(strstr(args.rows[0].reason, "x86-64 and arm64"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_64), cmocka_unit_test(arm64), cmocka_unit_test(several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
