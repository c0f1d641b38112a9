#include "router/print_format.h"

#include "base/checked.h"
#include "tests/support/guarded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* What a walk found, as "name:use name:use". */
struct found {
	char text[512];
	size_t used;
};

static void note(void *context, const char *name, size_t length, enum print_format_use use)
{
	static const char *const names[] = {
		[PRINT_DECIMAL] = "decimal", [PRINT_HEX] = "hex",         [PRINT_OCTAL] = "octal",
		[PRINT_CHAR] = "char",       [PRINT_STRING] = "string",   [PRINT_BITMASK] = "bitmask",
		[PRINT_BINARY] = "binary",   [PRINT_SYMBOLIC] = "symbolic",
	};
	struct found *found = context;

	found->used += (size_t)snprintf(found->text + found->used, sizeof(found->text) - found->used, "%s%.*s:%s",
		found->used ? " " : "", (int)length, name, names[use]);
	assert_true(found->used < sizeof(found->text));
}

struct format_case {
	const char *text, *expected;
};

static const struct format_case cases[] = {
	{ "", "" },
	{ "\"\"", "" },
	{ "\"no argument %%d\"", "" },
	{ " \"%d %u %lld %5zu\", REC->a, REC->b, REC->c, REC->d", "a:decimal b:decimal c:decimal d:decimal" },
	{ "\"%x %#llX %08lx %p %pS\", REC->a, REC->b, REC->c, REC->d, (void *)REC->e", "a:hex b:hex c:hex d:hex e:hex" },
	{ "\"%o %c %s\", REC->a, REC->b, REC->c", "a:octal b:char c:string" },
	/* every argument counts, also one that shows no field */
	{ "\"%d %d %x\", REC->a >> 20, 7, REC->b", "b:hex" },
	{ "\"%*d %.*s %x\", 3, REC->a, REC->n, REC->s, REC->b", "a:decimal s:string b:hex" },
	/* several constants, quoted quotes, commas and percents in them */
	{ "\"(%lx)\" \" \\\"%s\\\" , %%\"\n\"%x\", REC->ip, __get_str(s), REC->b", "ip:hex s:string b:hex" },
	{ "\"%d\", ((unsigned long)(REC->fd))", "fd:decimal" },
	{ "\"%d\", (u64) ( ( REC->fd ) )", "fd:decimal" },
	{ "\"%d %d\", REC->a[0], REC->a[REC->i + 1]", "a:decimal a:decimal" },
	{ "\"%x\", REC->a ? 1 : 2", "" },
	{ "\"%x\", REC->a + REC->b", "" },
	{ "\"%pM %pI4 %pI6c %pISpc\", REC->a, &REC->b, REC->c, REC->d", "a:binary b:binary c:binary d:binary" },
	{ "\"%*pbl\", 64, REC->mask", "mask:bitmask" },
	{ "\"%s %s\", __get_bitmask(m), __get_rel_cpumask(n)", "m:bitmask n:bitmask" },
	{ "\"%s\", __print_symbolic(REC->a, { 0, \"x,)\" }, { 1, \"y\" })", "a:symbolic" },
	{ "\"%s\", (REC->a & 0xf) ? __print_flags(REC->a & 0xf, \"|\", { 1, \"S\" }) : \"R\"", "a:symbolic" },
	{ "\"%s %s\", __print_hex(__get_dynamic_array(d), REC->n), __print_hex_str(REC->tag, 8)", "d:hex tag:hex" },
	{ "\"%s\", __print_array(__get_dynamic_array(d), __get_dynamic_array_len(d) / 4, 4)", "d:hex" },
	/* a helper's name inside a constant is none */
	{ "\"%s\", REC->a == '(' ? \"__get_str(x)\" : __get_str(y)", "y:string" },
	/* the kernel's conditional expressions of macros don't end the walk */
	{ "\"%d %x\", ({ int __i = 0; __i; }), REC->b", "b:hex" },
	/* fewer arguments than conversions, and none where the format should be */
	{ "\"%d %d\", REC->a", "a:decimal" },
	{ "REC->a, \"%d\"", "" },
	{ "\"%d\" REC->a", "" },
	/* what is cut short is passed over */
	{ "\"%", "" },
	{ "\"%d", "" },
	{ "\"%d\", REC->", "" },
	{ "\"%d\", ((((", "" },
	{ "\"%s\", __print_flags(", "" },
	{ "\"%d\\", "" },
};

static void what_arguments_say(void **state)
{
	struct guarded guarded;

	(void)state;
	guarded_create(&guarded, 4096);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t size = strlen(cases[i].text);
		struct found found = { 0 };

		print_format_walk((const char *)guarded_copy(&guarded, cases[i].text, size), size, note, &found);
		if (strcmp(found.text, cases[i].expected) != 0)
			fail_msg("%s: %s, not %s", cases[i].text, found.text, cases[i].expected);
	}
	guarded_release(&guarded);
}

static void nothing_behind_the_text_is_read(void **state)
{
	struct guarded guarded;

	(void)state;
	guarded_create(&guarded, 4096);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t size = 0; size < strlen(cases[i].text); size++) {
			struct found found = { 0 };

			print_format_walk((const char *)guarded_copy(&guarded, cases[i].text, size), size, note, &found);
		}
	guarded_release(&guarded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_arguments_say),
		cmocka_unit_test(nothing_behind_the_text_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
