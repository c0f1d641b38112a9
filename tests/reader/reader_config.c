#include "reader/config.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct reader_options defaults = {
	.buffer_size = 8 << 20, .pool_size = 1 << 20, .interval = 4000000
};

static void test_every_key(void **state)
{
	static const char text[] =
		"; a comment\n"
		"[session]\n"
		"group = wheel\nrouter-user = 33\npolicy=/etc/p\nconfinement: require ; why\n"
		"pool = 2M\ninterval=20\n"
		"# another\n"
		"\n"
		"[kernel]\r\n"
		"source = text\nbuffer-size = 256K\nsubbuf-size = 64k\nclock = mono\ntracefs = /t";
	struct reader_options options = defaults;
	struct config_error error;
	struct config config;

	(void)state;
	if (config_parse(text, strlen(text), &config, &error) < 0)
		fail_msg("line %d: %s", error.line, error.message);
	assert_int_equal(config_apply(&config, &options, &error), 0);
	assert_string_equal(options.group, "wheel");
	assert_string_equal(options.router_user, "33");
	assert_string_equal(options.policy, "/etc/p");
	assert_int_equal(options.confinement, CONFINE_REQUIRE);
	assert_true(options.pool_size == 2 << 20);
	assert_true(options.interval == 20000000);
	assert_int_equal(options.source, OPTIONS_TEXT);
	assert_true(options.buffer_size == 256 << 10);
	assert_true(options.subbuf_size == 64 << 10);
	assert_string_equal(options.tracefs, "/t");
	for (size_t i = 0; i < SETTING_COUNT; i++)
		assert_non_null(config.values[i]);
	config_release(&config);
}

/* What the command line has stays, what the file lacks keeps its default. */
static void test_the_command_line_goes_first(void **state)
{
	static const char text[] = "[session]\ngroup = wheel\n[kernel]\nbuffer-size = 1M\n";
	struct reader_options options = defaults;
	struct config_error error;
	struct config config;

	(void)state;
	options.group = "adm";
	options.given = 1U << SETTING_GROUP;
	assert_int_equal(config_parse(text, strlen(text), &config, &error), 0);
	assert_int_equal(config_apply(&config, &options, &error), 0);
	assert_string_equal(options.group, "adm");
	assert_true(options.buffer_size == 1 << 20);
	assert_true(options.pool_size == 1 << 20);
	config_release(&config);
}

/* The message says which line, and holds these words. */
static void refused(int line, const char *words, const char *text)
{
	struct config_error error = { .line = -1 };
	struct config config;

	if (config_parse(text, strlen(text), &config, &error) != -EINVAL)
		fail_msg("taken: %s", text);
	if (!strstr(error.message, words) || error.line != line)
		fail_msg("line %d, \"%s\": expected line %d, \"%s\"", error.line, error.message, line, words);
}

static void test_refused(void **state)
{
	char longest[300] = "[session]\ngroup = ";

	(void)state;
	refused(2, "neither [SECTION] nor KEY", "[session]\ngroup\n");
	refused(3, "neither [SECTION] nor KEY", "[session]\n\n[kernel\nsource = raw\n");
	refused(1, "belongs into the section [session]", "group = wheel\n");
	refused(2, "belongs into the section [kernel]", "[session]\nsource = raw\n");
	refused(2, "[kernel] has no key \"bufer-size\"; it has: source, buffer-size", "[kernel]\nbufer-size = 1M\n");
	refused(2, "no section is called [kernal]; there are: session, kernel", "[kernal]\nsize = 1M\n");
	refused(4, "group is set in line 2, too", "[session]\ngroup = a\npool = 1M\ngroup = a\n");
	refused(3, "group is set in line 2, too", "[session]\ngroup = a\n and on\n");
	refused(2, "buffer-size takes bytes, or a number with K, M or G: \"lots\"", "[kernel]\nbuffer-size = lots\n");
	refused(2, "pool must lie between", "[session]\npool = 5G\n");
	refused(2, "subbuf-size takes a power of two", "[kernel]\nsubbuf-size = 12K\n");
	refused(2, "source is raw or text", "[kernel]\nsource = binary\n");
	refused(2, "clock can only be mono", "[kernel]\nclock = boot\n");
	refused(2, "confinement is best-effort or require", "[session]\nconfinement = off\n");
	refused(2, "group is empty", "[session]\ngroup =\n");
	refused(2, "control character", "[session]\ngroup = a\001b\n");
	memset(longest + strlen(longest), 'x', 200);
	refused(2, "more than 196 bytes", longest);
	/* The first of several. */
	refused(2, "clock", "[kernel]\nclock = tai\nsource = binary\n[nothing]\nx = y\n");
}

static void test_probes(void **state)
{
	static const char text[] =
		"[probes]\n"
		"opens = kprobe:do_sys_openat2+0x4 path=+0(%si):ustring\n"
		"  flags=+0(%dx):x64\n"
		"reads = kretprobe:vfs_read n=$retval\n"
		"main = uprobe:/bin/a b:c:0x1000\n"
		"[session]\npool = 2M\n";
	static const char fetch[] = "path=+0(%si):ustring\0flags=+0(%dx):x64";
	struct reader_options options = defaults;
	const struct control_create *create;
	struct config_error error;
	struct config config;

	(void)state;
	/* A blank ends a word, in a path, too. */
	refused(5, "/PATH:0xOFFSET, in bytes of the file: \"/bin/a\"", text);
	if (config_parse(text, (size_t)(strstr(text, "main") - text), &config, &error) < 0)
		fail_msg("line %d: %s", error.line, error.message);
	assert_int_equal(config.probe_count, 2);
	create = &config.probes[0].create;
	assert_int_equal(config.probes[0].line, 2);
	assert_int_equal(create->kind, PROBE_KPROBE);
	assert_string_equal(create->name, "opens");
	assert_string_equal(create->symbol, "do_sys_openat2");
	assert_int_equal(create->offset, 4);
	assert_int_equal(create->fetch_count, 2);
	assert_memory_equal(create->fetch, fetch, sizeof(fetch));
	assert_int_equal(config_apply(&config, &options, &error), 0);
	assert_int_equal(options.standing_count, 2);
	assert_ptr_equal(standing_find(options.standing, 2, &(struct control_create){ .event = "reads" }),
		&config.probes[1]);
	assert_null(standing_find(options.standing, 2, &(struct control_create){ .event = "writes" }));
	config_release(&config);

	refused(3, "the probe a is defined in line 2, too", "[probes]\na = kprobe:f\na = kprobe:g\n");
	refused(2, "the probe has no name", "[probes]\n= kprobe:f\n");
	refused(2, "letters, digits and '_'", "[probes]\na/b = kprobe:f\n");
	refused(2, "is kprobe:, kretprobe:, uprobe: or uretprobe:", "[probes]\na = usdt:/bin/a:b:c\n");
	refused(2, "is kprobe:, kretprobe:, uprobe: or uretprobe:", "[probes]\na = kprobe\n");
	refused(2, "SYMBOL[+OFFSET]", "[probes]\na = kprobe:\n");
	refused(2, "not an offset: \"x\"", "[probes]\na = kprobe:f+x\n");
	refused(2, "/PATH:0xOFFSET", "[probes]\na = uprobe:bin/a:0x10\n");
	refused(2, "not an offset: \"main\"", "[probes]\na = uprobe:/bin/a:main\n");
	refused(2, "has no definition", "[probes]\na =\n");
	refused(3, "an argument is NAME=FETCH", "[probes]\na = kprobe:f\n =x\n");
}

static void contradiction(const char *words, const char *text, const struct reader_options *given)
{
	struct reader_options options = *given;
	struct config_error error = { .line = -1 };
	struct config config;

	assert_int_equal(config_parse(text, strlen(text), &config, &error), 0);
	if (config_apply(&config, &options, &error) != -EINVAL)
		fail_msg("taken: %s", text);
	if (!strstr(error.message, words))
		fail_msg("\"%s\" lacks \"%s\"", error.message, words);
	config_release(&config);
}

static void test_contradictions(void **state)
{
	struct reader_options options = defaults;

	(void)state;
	contradiction("subbuf-size (line 3) is larger than buffer-size (line 2)",
		"[kernel]\nbuffer-size = 16K\nsubbuf-size = 64K\n", &options);
	options.subbuf_size = 64 << 10;
	options.given = 1U << SETTING_SUBBUF_SIZE;
	contradiction("--subbuf-size is larger than buffer-size (line 2)", "[kernel]\nbuffer-size = 16K\n", &options);
	options = defaults;
	options.input = "file";
	options.source = OPTIONS_REPLAY;
	contradiction("source contradicts --replay", "[kernel]\nsource = raw\n", &options);
}

static int read_file(const char *path, struct config_error *error)
{
	struct config config;
	int r = config_read(path, geteuid(), &config, error);

	if (!r)
		config_release(&config);
	return r;
}

static void test_the_file(void **state)
{
	char path[] = "/tmp/test-config-XXXXXX";
	struct config_error error;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "[session]\npool = 2M\n", 20), 20);
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_equal(read_file(path, &error), 0);
	assert_int_equal(fchmod(fd, 0664), 0);
	assert_int_equal(read_file(path, &error), -EPERM);
	assert_non_null(strstr(error.message, "chmod go-w"));
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(ftruncate(fd, CONFIG_SIZE_MAX + 1), 0);
	assert_int_equal(read_file(path, &error), -EINVAL);
	assert_non_null(strstr(error.message, "larger than"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(read_file(path, &error), -ENOENT);
	assert_int_equal(read_file("/", &error), -EINVAL);
	assert_non_null(strstr(error.message, "not a regular file"));
	close(fd);
}

static void test_the_example_with_all_its_lines(void **state)
{
	struct config_error error;

	(void)state;
	if (read_file(TESTS_SOURCE_DIR "/fuzz/seeds/config/every_key", &error) < 0)
		fail_msg("line %d: %s", error.line, error.message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_the_command_line_goes_first),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_the_file),
		cmocka_unit_test(test_the_example_with_all_its_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
