/* Fetch arguments as they go to the reader, and positions told in what the user wrote. */
#include "consumers/client/fetch.h"

#include "base/checked.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct packed {
	struct probe_spec spec;
	struct control_create create;
	struct fetch_places places;
	struct probe_spec_error error;
};

static int pack(struct packed *p, const char *text, struct fetch_context context)
{
	memset(p, 0, sizeof(*p));
	assert_int_equal(probe_spec_parse(text, &p->spec, &p->error), 0);
	context.kind = p->spec.kind;
	return fetch_pack(&p->spec, &context, &p->create, &p->places, &p->error);
}

/* The i-th of the packed texts. */
static const char *text_of(const struct packed *p, uint32_t i)
{
	const char *at = p->create.fetch;

	assert_true(i < p->create.fetch_count);
	while (i--)
		at += strlen(at) + 1;
	return at;
}

static const struct fetch_context amd64 = { .machine = EM_X86_64, .is_64 = true };
static const struct fetch_context arm64 = { .machine = EM_AARCH64, .is_64 = true };
static const struct fetch_context i386 = { .machine = EM_386 };

static void arguments_of_user_functions(void **state)
{
	static const char *const registers[] = { "%di", "%si", "%dx", "%cx", "%r8", "%r9" };
	struct packed *p = malloc(sizeof(*p));

	(void)state;
	assert_int_equal(pack(p, "uprobe:/a:f a=$arg1 b=$arg2 c=$arg3 d=$arg4 e=$arg5 f=$arg6", amd64), 0);
	assert_int_equal(p->create.fetch_count, 6);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(text_of(p, i)[0], 'a' + (int)i);
		assert_string_equal(text_of(p, i) + 2, registers[i]);
	}
	assert_int_equal(pack(p, "uprobe:/a:f path=+0(+8($arg2)):string n=$arg10", arm64), -EINVAL);
	assert_int_equal(p->error.position, 40);
	assert_int_equal(pack(p, "uprobe:/a:f path=+0(+8($arg2)):string", arm64), 0);
	assert_string_equal(text_of(p, 0), "path=+0(+8(%x1)):string");
	assert_int_equal(pack(p, "uprobe:/a:f n=$arg1", i386), -EINVAL);
	assert_int_equal(p->error.position, 14);
	assert_int_equal(pack(p, "uprobe:/a:f n=+4(%sp):u32", i386), 0);
	assert_int_equal(pack(p, "uprobe:/a:f n=$arg7", amd64), -EINVAL);
	assert_int_equal(pack(p, "uretprobe:/a:f n=$retval x=$arg1", amd64), -EINVAL);
	assert_non_null(strstr(p->error.message, "$retval"));
	free(p);
}

/* The kernel knows the arguments of its own functions. */
static void arguments_of_the_kernel_are_its_own(void **state)
{
	struct packed *p = malloc(sizeof(*p));

	(void)state;
	assert_int_equal(pack(p, "kprobe:vfs_read count=$arg3:u64", (struct fetch_context){ 0 }), 0);
	assert_string_equal(text_of(p, 0), "count=$arg3:u64");
	free(p);
}

static void types_that_the_kernel_would_get_wrong(void **state)
{
	struct packed *p = malloc(sizeof(*p));

	(void)state;
	assert_int_equal(pack(p, "uprobe:/a:f c=$comm d=$comm:x8 t=\\\"$arg1 x\" n=%di", amd64), 0);
	assert_string_equal(text_of(p, 0), "c=$comm:string");
	assert_string_equal(text_of(p, 1), "d=$comm:x8");
	/* What stands in quotes is text. */
	assert_string_equal(text_of(p, 2), "t=\\\"$arg1 x\":string");
	assert_string_equal(text_of(p, 3), "n=%di");
	free(p);
}

static void static_probes(void **state)
{
	struct usdt_args args = { .count = 3, .rows = {
		{ .fetch = "%di", .type = "s32" }, { .reason = "it is a vector register" },
		{ .fetch = "-16(%bp)", .type = "u64" } } };
	struct fetch_context context = { .machine = EM_X86_64, .is_64 = true, .usdt = &args };
	struct packed *p = malloc(sizeof(*p));

	(void)state;
	assert_int_equal(pack(p, "usdt:/a:p:n", context), 0);
	assert_int_equal(p->create.fetch_count, 2);
	assert_string_equal(text_of(p, 0), "arg1=%di:s32");
	assert_string_equal(text_of(p, 1), "arg3=-16(%bp):u64");
	assert_int_equal(pack(p, "usdt:/a:p:n fd=$arg1 path=+0($arg3):string m=$arg1:u8", context), 0);
	assert_string_equal(text_of(p, 0), "fd=%di:s32");
	assert_string_equal(text_of(p, 1), "path=+0(-16(%bp)):string");
	assert_string_equal(text_of(p, 2), "m=%di:u8");
	assert_int_equal(pack(p, "usdt:/a:p:n x=$arg2", context), -EINVAL);
	assert_non_null(strstr(p->error.message, "vector register"));
	assert_int_equal(p->error.position, 14);
	assert_int_equal(pack(p, "usdt:/a:p:n x=$arg4", context), -EINVAL);
	assert_non_null(strstr(p->error.message, "3 arguments"));
	free(p);
}

static void positions_in_the_users_text(void **state)
{
	struct packed *p = malloc(sizeof(*p));

	(void)state;
	/*               0         1         2         3 */
	/*               0123456789012345678901234567890123456789 */
	assert_int_equal(pack(p, "kprobe:f  aa=%di:u65   b=$comm c=+0(%si", amd64), 0);
	assert_int_equal(fetch_position(&p->places, 0), 10);
	assert_int_equal(fetch_position(&p->places, 7), 17);
	/* The second text begins behind the first one's NUL. */
	assert_int_equal(fetch_position(&p->places, 11), 23);
	assert_int_equal(fetch_position(&p->places, 26), 31);
	assert_int_equal(fetch_position(&p->places, 34), 39);
	assert_int_equal(fetch_position(&p->places, 400), -1);
	assert_int_equal(fetch_position(&p->places, -1), -1);
	/* A translated text is told by its argument. */
	assert_int_equal(pack(p, "uprobe:/a:f  n=$arg1:u65", amd64), 0);
	assert_int_equal(fetch_position(&p->places, 6), 13);
	free(p);
}

static void more_than_fits(void **state)
{
	struct packed *p = malloc(sizeof(*p));
	char text[CONTROL_FETCH_MAX + 64] = "uprobe:/a:f ";
	size_t used = strlen(text);

	(void)state;
	/* "a=" and the NUL are not counted by the notation's own limit. */
	memcpy(text + used, "a=", 2);
	memset(text + used + 2, '1', CONTROL_FETCH_MAX - 2);
	text[used + CONTROL_FETCH_MAX] = '\0';
	assert_int_equal(pack(p, text, amd64), -EINVAL);
	text[used + CONTROL_FETCH_MAX - 1] = '\0';
	assert_int_equal(pack(p, text, amd64), 0);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_of_user_functions), cmocka_unit_test(arguments_of_the_kernel_are_its_own),
		cmocka_unit_test(types_that_the_kernel_would_get_wrong), cmocka_unit_test(static_probes),
		cmocka_unit_test(positions_in_the_users_text), cmocka_unit_test(more_than_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
