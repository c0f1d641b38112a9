/* Paths as texts, and the names of a folder. */
#include "consumers/watch/path.h"
#include "consumers/watch/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void names_are_resolved(void **state)
{
	static const struct {
		const char *base, *name, *path;
	} rows[] = {
		{ "/a", "b", "/a/b" }, { "/a", "/b", "/b" }, { "/", "b", "/b" }, { "/a/b", "..", "/a" }, { "/a", "../../..", "/" },
		{ "/a", "", "/a" }, { "/a", ".", "/a" }, { "/a", "./b//c/.", "/a/b/c" }, { "/a", "b/../c/", "/a/c" }, { NULL, "/", "/" },
		{ NULL, "//x///y", "/x/y" }, { "/a b\n\xff", "...", "/a b\n\xff/..." }, { "/a", "..b", "/a/..b" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *path = path_resolve(rows[i].base, rows[i].name);

		assert_non_null(path);
		assert_string_equal(path, rows[i].path);
		free(path);
	}
	assert_null(path_resolve(NULL, "b"));
	assert_null(path_resolve(NULL, ""));
}

static void a_folder_holds_what_is_in_it(void **state)
{
	(void)state;
	assert_true(path_inside("/a", "/a"));
	assert_true(path_inside("/a", "/a/b"));
	assert_false(path_inside("/a", "/ab"));
	assert_false(path_inside("/a", "/"));
	assert_true(path_inside("/", "/"));
	assert_true(path_inside("/", "/x"));
}

static void a_tree_follows(void **state)
{
	struct tree tree;

	(void)state;
	assert_int_equal(tree_init(&tree, "/nowhere/w"), 0);
	tree_look(&tree);
	assert_int_equal(tree_has(&tree, "/nowhere/w/a"), TREE_NO);
	tree_add(&tree, "/nowhere/w/a/b/c");
	assert_int_equal(tree_has(&tree, "/nowhere/w/a"), TREE_YES);
	assert_int_equal(tree_has(&tree, "/nowhere/w/a/b/c"), TREE_YES);
	assert_int_equal(tree_has(&tree, "/nowhere/w/a/c"), TREE_NO);
	/* What is in it goes with it. */
	tree_move(&tree, "/nowhere/w/a/b", "/nowhere/w/d");
	assert_int_equal(tree_has(&tree, "/nowhere/w/a/b/c"), TREE_NO);
	assert_int_equal(tree_has(&tree, "/nowhere/w/d/c"), TREE_YES);
	tree_add(&tree, "/nowhere/w/a/b");
	assert_int_equal(tree_has(&tree, "/nowhere/w/a/b/c"), TREE_NO);
	tree_move(&tree, "/nowhere/w/d", "/elsewhere");
	assert_int_equal(tree_has(&tree, "/nowhere/w/d"), TREE_NO);
	tree_remove(&tree, "/nowhere/w/a");
	assert_int_equal(tree_has(&tree, "/nowhere/w/a"), TREE_NO);
	/* Others are no matter, and the folder itself isn't in it. */
	tree_add(&tree, "/nowhere/wx/y");
	tree_add(&tree, "/nowhere/w");
	assert_int_equal(tree_has(&tree, "/nowhere/w"), TREE_NO);
	tree_add(&tree, "/nowhere/w/z");
	tree_forget(&tree);
	assert_int_equal(tree_has(&tree, "/nowhere/w/z"), TREE_UNKNOWN);
	tree_add(&tree, "/nowhere/w/z");
	assert_int_equal(tree_has(&tree, "/nowhere/w/z"), TREE_YES);
	tree_free(&tree);
}

static void a_tree_looks(void **state)
{
	char folder[] = "/tmp/watch-path-XXXXXX", inner[32], deep[64];
	struct tree tree;

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(inner, sizeof(inner), "%s/in", folder);
	(void)snprintf(deep, sizeof(deep), "%s/deep", inner);
	assert_int_equal(mkdir(inner, 0700), 0);
	assert_int_equal(mkdir(deep, 0700), 0);
	assert_int_equal(tree_init(&tree, folder), 0);
	tree_look(&tree);
	assert_int_equal(tree_has(&tree, inner), TREE_YES);
	assert_int_equal(tree_has(&tree, deep), TREE_YES);
	/* From outside comes whatever is in it. */
	tree_remove(&tree, inner);
	assert_int_equal(tree_has(&tree, deep), TREE_NO);
	tree_move(&tree, "/elsewhere", inner);
	assert_int_equal(tree_has(&tree, deep), TREE_YES);
	tree_free(&tree);
	assert_int_equal(rmdir(deep), 0);
	assert_int_equal(rmdir(inner), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_resolved),
		cmocka_unit_test(a_folder_holds_what_is_in_it),
		cmocka_unit_test(a_tree_follows),
		cmocka_unit_test(a_tree_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
