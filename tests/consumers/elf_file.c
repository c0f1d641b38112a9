/* Symbols and static probes of programs that are compiled here, against what the kernel has mapped. */
#include "consumers/client/elf.h"
#include "consumers/client/usdt.h"

#include "base/checked.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SOURCES TESTS_SOURCE_DIR "/consumers/elf_sources/"

static char folder[] = "/tmp/tracefan-elf-XXXXXX";

/* Runs a shell command in the folder; its output's first line, where it is wanted. */
__attribute__((format(printf, 2, 3))) static int run(char *output, const char *format, ...)
{
	char command[4096], line[256] = "";
	size_t used = (size_t)snprintf(command, sizeof(command), "cd %s && exec 2>/dev/null && ", folder);
	FILE *pipe;
	va_list ap;
	int rc;

	va_start(ap, format);
	(void)vsnprintf(command + used, sizeof(command) - used, format, ap);
	va_end(ap);
	pipe = popen(command, "re");
	assert_non_null(pipe);
	if (fgets(line, sizeof(line), pipe) && output)
		memcpy(output, line, sizeof(line));
	rc = pclose(pipe);
	return WIFEXITED(rc) ? WEXITSTATUS(rc) : -1;
}

static const char *in_folder(const char *name)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void open_file(const char *name, struct elf_file *file)
{
	struct failure failure;
	int rc;

	failure_init(&failure);
	rc = elf_file_open(name[0] == '/' ? name : in_folder(name), file, &failure);
	if (rc)
		print_error("%s\n", failure.text);
	assert_int_equal(rc, 0);
}

/* The library's answer equals the kernel's. */
static void assert_offset(const char *name, const char *symbol, const char *question)
{
	struct elf_file file = ELF_FILE_NONE;
	struct failure failure;
	uint64_t found = 0;
	char line[256];
	int rc;

	failure_init(&failure);
	open_file(name, &file);
	rc = elf_file_symbol(&file, symbol, 0, &found, &failure);
	if (rc)
		print_error("%s\n", failure.text);
	assert_int_equal(rc, 0);
	assert_int_equal(run(line, "%s", question), 0);
	assert_int_equal(found, strtoull(line, NULL, 16));
	elf_file_release(&file);
}

static void assert_no_symbol(const char *name, const char *symbol, uint64_t offset, int error, const char *words)
{
	struct elf_file file = ELF_FILE_NONE;
	struct failure failure;
	uint64_t found;
	int rc;

	failure_init(&failure);
	open_file(name, &file);
	rc = elf_file_symbol(&file, symbol, offset, &found, &failure);
	if (rc != -error || !strstr(failure.text, words))
		print_error("%s: %d %s\n", symbol, rc, failure.text);
	assert_int_equal(rc, -error);
	assert_int_equal(failure.public.category, TFAN_LOCATION);
	assert_non_null(strstr(failure.text, words));
	elf_file_release(&file);
}

static void assert_no_file(const char *path, int error, enum tfan_class category, const char *words)
{
	struct elf_file file = ELF_FILE_NONE;
	struct failure failure;

	failure_init(&failure);
	assert_int_equal(elf_file_open(path, &file, &failure), -error);
	assert_int_equal(failure.public.category, category);
	assert_non_null(strstr(failure.text, words));
}

/* ---- symbols ---- */

static void programs_of_each_kind(void **state)
{
	static const struct {
		const char *name, *flags;
	} rows[] = {
		{ "pie", "-fPIE -pie" },
		{ "no-pie", "-fno-PIE -no-pie" },
		{ "static", "-DSTATIC -static -no-pie" },
		{ "static-pie", "-DSTATIC -fPIE -static-pie" },
		{ "packed", "-fPIE -pie -Wl,-z,noseparate-code" },
	};
	char question[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		static const char *const symbols[] = { "probed", "hidden", "main" };

		assert_int_equal(run(NULL, TEST_CC " -O1 %s -o %s %sprobed.c", rows[i].flags, rows[i].name, SOURCES), 0);
		for (size_t j = 0; j < ARRAY_SIZE(symbols); j++) {
			(void)snprintf(question, sizeof(question), "./%s %s", rows[i].name, symbols[j]);
			assert_offset(rows[i].name, symbols[j], question);
		}
	}
}

static void a_library_with_versions(void **state)
{
	(void)state;
	assert_offset("library.so", "shared_function", "./pie ./library.so shared_function");
	assert_offset("library.so", "versioned", "./pie ./library.so versioned");
	assert_offset("library.so", "versioned@LIB_1", "./pie ./library.so versioned LIB_1");
	assert_offset("library.so", "versioned@LIB_2", "./pie ./library.so versioned LIB_2");
	assert_offset("library.so", "versioned@@LIB_2", "./pie ./library.so versioned LIB_2");
	/* The same from .dynsym alone, where versions stand in tables of their own. */
	assert_offset("stripped.so", "shared_function", "./pie ./stripped.so shared_function");
	assert_offset("stripped.so", "versioned", "./pie ./stripped.so versioned");
	assert_offset("stripped.so", "versioned@LIB_1", "./pie ./stripped.so versioned LIB_1");
	assert_no_symbol("stripped.so", "versioned@LIB_3", 0, ENOENT, "no symbol \"versioned@LIB_3\"");
	assert_no_symbol("stripped.so", "shared_functoin", 0, ENOENT, "did you mean shared_function?");
	assert_no_symbol("stripped.so", "shared_functoin", 0, ENOENT, "stripped");
}

static void a_symbol_and_an_offset(void **state)
{
	struct elf_file file = ELF_FILE_NONE;
	struct failure failure;
	uint64_t at, behind;

	(void)state;
	open_file("pie", &file);
	assert_int_equal(elf_file_symbol(&file, "probed", 0, &at, &failure), 0);
	assert_int_equal(elf_file_symbol(&file, "probed", 2, &behind, &failure), 0);
	assert_int_equal(behind, at + 2);
	elf_file_release(&file);
	assert_no_symbol("pie", "probed", 4096, ERANGE, "bytes long");
	assert_no_symbol("pie", "probed", UINT64_MAX, ERANGE, "bytes long");
}

static void symbols_that_will_not_do(void **state)
{
	(void)state;
	assert_no_symbol("pie", "prob", 0, ENOENT, "did you mean probed?");
	assert_no_symbol("pie", "counter", 0, EINVAL, "data");
	assert_no_symbol("pie", "dlopen", 0, ENOENT, "libraries");
	assert_no_symbol("library.so", "chosen", 0, EINVAL, "IFUNC");
	assert_no_symbol("library.so", "data_symbol", 0, EINVAL, "data");
	assert_no_symbol("stripped", "probed", 0, ENOENT, "stripped");
	assert_no_symbol("twins", "twin", 0, ENOTUNIQ, "2 functions named \"twin\"; say which: 0x");
}

/* A stripped program whose names lie in a file of their own, found by the build id. */
static void names_in_a_debug_file(void **state)
{
	struct elf_file file = ELF_FILE_NONE;
	struct failure failure;
	char line[256], root[300];
	uint64_t found;

	(void)state;
	failure_init(&failure);
	if (run(line, "objcopy --only-keep-debug pie names && "
		"id=$(readelf -n pie | sed -n 's/.*Build ID: //p') && rest=${id#??} && first=${id%%$rest} && "
		"mkdir -p debug/.build-id/$first && mv names debug/.build-id/$first/$rest.debug") != 0)
		skip(); /* a compiler that gives no build id */
	(void)snprintf(root, sizeof(root), "%s", in_folder("debug"));
	open_file("stripped", &file);
	assert_true(file.is_stripped);
	elf_debug_open(&file, root);
	assert_false(file.is_stripped);
	assert_int_equal(elf_file_symbol(&file, "hidden", 0, &found, &failure), 0);
	assert_int_equal(run(line, "./stripped hidden"), 0);
	assert_int_equal(found, strtoull(line, NULL, 16));
	elf_file_release(&file);
	/* Another build's names are none. */
	open_file("twins", &file);
	elf_debug_open(&file, root);
	assert_null(file.debug);
	elf_file_release(&file);
	assert_int_equal(run(NULL, "f=$(echo debug/.build-id/*/*) && cp twins $f"), 0);
	open_file("stripped", &file);
	elf_debug_open(&file, root);
	assert_null(file.debug);
	elf_file_release(&file);
}

static void offsets_in_the_file(void **state)
{
	struct elf_file file = ELF_FILE_NONE;
	struct failure failure;
	char line[256], words[64];
	uint64_t at;

	(void)state;
	failure_init(&failure);
	open_file("no-pie", &file);
	assert_int_equal(elf_file_symbol(&file, "probed", 0, &at, &failure), 0);
	assert_int_equal(elf_file_check_offset(&file, at, &failure), 0);
	assert_int_equal(elf_file_check_offset(&file, 0, &failure), -EINVAL);
	/* What nm prints for a program with fixed addresses is an address; the offset that was meant is told. */
	assert_int_equal(run(line, "nm no-pie | grep ' probed$'"), 0);
	assert_int_equal(elf_file_check_offset(&file, strtoull(line, NULL, 16), &failure), -EINVAL);
	(void)snprintf(words, sizeof(words), "that is 0x%llx", (unsigned long long)at);
	assert_non_null(strstr(failure.text, words));
	elf_file_release(&file);
}

/* At every byte of a function: it agrees with the disassembler about where instructions begin. */
static void instructions_begin_here(void **state)
{
	struct elf_file file = ELF_FILE_NONE;
	struct failure failure;
	bool begins[4096] = { false };
	uint64_t begin, size = 0;
	size_t refused = 0;
	char line[256];

	(void)state;
#ifndef __x86_64__
	skip();
#endif
	failure_init(&failure);
	open_file("pie", &file);
	assert_int_equal(elf_file_symbol(&file, "main", 0, &begin, &failure), 0);
	assert_int_equal(run(line, "objdump -d pie | sed -n '/<main>:/,/^$/s/^ *\\([0-9a-f]*\\):\\t.*/\\1/p' > starts; "
		"nm -S pie | sed -n 's/.* \\([0-9a-f]*\\) T main$/\\1/p'"), 0);
	size = strtoull(line, NULL, 16);
	assert_true(size > 16 && size < sizeof(begins));
	for (int i = 1;; i++) {
		assert_int_equal(run(line, "sed -n '%d{p;q}' starts; exit 0", i), 0);
		if (line[0] == '\n' || line[0] == '\0')
			break;
		begins[strtoull(line, NULL, 16) - begin] = true;
		line[0] = '\0';
	}
	for (uint64_t i = 0; i < size; i++) {
		int rc = elf_file_check_boundary(&file, begin + i, false, &failure);

		assert_int_equal(rc, begins[i] ? 0 : -EINVAL);
		refused += rc != 0;
		/* Only the first is a function's. */
		assert_int_equal(elf_file_check_boundary(&file, begin + i, true, &failure), i == 0 ? 0 : -EINVAL);
	}
	assert_true(refused > 0);
	elf_file_release(&file);
}

/* ---- files ---- */

static void links_and_other_paths(void **state)
{
	struct elf_file file = ELF_FILE_NONE;
	char path[300];

	(void)state;
	assert_int_equal(run(NULL, "ln -sf pie one && ln -sf one 'two links'"), 0);
	open_file("two links", &file);
	assert_string_equal(file.path, in_folder("pie"));
	assert_int_equal(fcntl(file.fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(file.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	elf_file_release(&file);
	(void)snprintf(path, sizeof(path), "/proc/%d/root%s", getpid(), in_folder("pie"));
	open_file(path, &file);
	elf_file_release(&file);
}

static void files_that_will_not_do(void **state)
{
	(void)state;
	assert_no_file(in_folder("nothing"), ENOENT, TFAN_LOCATION, "there is no file");
	assert_no_file(in_folder("pie/x"), ENOTDIR, TFAN_LOCATION, "there is no file");
	assert_no_file(folder, EISDIR, TFAN_LOCATION, "a directory");
	assert_no_file("/dev/null", EINVAL, TFAN_LOCATION, "no regular file");
	assert_int_equal(run(NULL, "mkfifo fifo; printf '#!/bin/sh\\n' > script; : > empty; " TEST_CC " -c -o object.o "
		"-DNUMBER=1 -DCALLER=a %stwins.c", SOURCES), 0);
	assert_no_file(in_folder("fifo"), EINVAL, TFAN_LOCATION, "no regular file");
	assert_no_file(in_folder("script"), ENOEXEC, TFAN_LOCATION, "script");
	assert_no_file(in_folder("empty"), ENOEXEC, TFAN_LOCATION, "ELF");
	assert_no_file(in_folder("object.o"), ENOEXEC, TFAN_LOCATION, "neither a program nor a shared library");
}

static void a_file_that_others_may_not_read(void **state)
{
	(void)state;
	assert_int_equal(run(NULL, "cp pie secret && chmod 0700 secret && chmod 0711 ."), 0);
	/* Root may read anything. */
	if (geteuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	else
		assert_int_equal(run(NULL, "chmod 0 secret"), 0);
	assert_no_file(in_folder("secret"), EACCES, TFAN_NOT_PERMITTED, "who may read");
	(void)seteuid(0);
}

static void go_programs_are_known(void **state)
{
	struct elf_file file = ELF_FILE_NONE;

	(void)state;
	open_file("pie", &file);
	assert_false(file.is_go);
	elf_file_release(&file);
	assert_int_equal(run(NULL, "objcopy --add-section .go.buildinfo=%sprobed.c pie like-go", SOURCES), 0);
	open_file("like-go", &file);
	assert_true(file.is_go);
	elf_file_release(&file);
}

/* Every eighth byte of the headers broken in turn: an error or an answer, never a crash. */
static void damaged_files(void **state)
{
	static uint8_t bytes[1 << 20];
	ssize_t size;
	int fd = open(in_folder("library.so"), O_RDONLY | O_CLOEXEC), memory = memfd_create("damaged", MFD_CLOEXEC);
	size_t answered = 0, refused = 0;
	char path[64];

	(void)state;
	size = read(fd, bytes, sizeof(bytes));
	assert_true(size > 4096);
	assert_int_equal(write(memory, bytes, (size_t)size), size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	for (off_t at = 0; at < size; at += at < 1024 ? 3 : 41) {
		struct elf_file file = ELF_FILE_NONE;
		struct usdt_site *sites;
		struct failure failure;
		uint64_t found;
		size_t count;
		uint8_t broken = bytes[at] ^ 0xff;

		failure_init(&failure);
		assert_int_equal(pwrite(memory, &broken, 1, at), 1);
		if (elf_file_open(path, &file, &failure) == 0) {
			(void)elf_file_symbol(&file, "versioned@LIB_1", 0, &found, &failure);
			(void)elf_file_symbol(&file, "nothing", 0, &found, &failure);
			if (usdt_find(&file, "a", "b", &sites, &count, &failure) == 0)
				free(sites);
			elf_file_release(&file);
			answered++;
		} else {
			refused++;
		}
		assert_int_equal(pwrite(memory, &bytes[at], 1, at), 1);
	}
	assert_true(answered > 0 && refused > 0);
	(void)close(fd);
	(void)close(memory);
}

/* ---- static probes ---- */

static void assert_inside(const struct elf_file *file, const char *function, uint64_t offset)
{
	struct failure failure;
	uint64_t begin, end;
	uint8_t byte;

	assert_int_equal(elf_file_symbol(file, function, 0, &begin, &failure), 0);
	end = begin + 256;
	assert_true(offset >= begin && offset < end);
#ifdef __x86_64__
	/* Where the probe stands, sys/sdt.h has left a nop. */
	assert_int_equal(pread(file->fd, &byte, 1, (off_t)offset), 1);
	assert_int_equal(byte, 0x90);
#else
	(void)byte;
#endif
}

static void a_static_probe_at_two_places(void **state)
{
	static const char *const flags[] = { "-fPIE -pie", "-fno-PIE -no-pie" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct elf_file file = ELF_FILE_NONE;
		struct usdt_site *sites = NULL;
		struct failure failure;
		size_t count = 0;

		failure_init(&failure);
		if (run(NULL, TEST_CC " -O2 %s -o statics %sstatics.c", flags[i], SOURCES) != 0)
			skip();
		open_file("statics", &file);
		assert_int_equal(usdt_find(&file, "demo", "twice", &sites, &count, &failure), 0);
		assert_int_equal(count, 2);
		assert_inside(&file, "first", sites[0].offset);
		assert_inside(&file, "second", sites[1].offset);
		assert_int_equal(sites[0].ref_offset, 0);
		assert_int_equal(sites[0].args.count, 2);
		assert_int_equal(sites[1].args.count, 2);
		assert_string_equal(sites[0].args.rows[0].type, "s32");
		assert_string_equal(sites[1].args.rows[0].type, "s64");
		/* A register or a place on the stack, as the compiler likes. */
		assert_null(sites[0].args.rows[0].reason);
		assert_non_null(strchr(sites[0].args.rows[0].fetch, '%'));
		free(sites);
		assert_int_equal(usdt_find(&file, "demo", "twise", &sites, &count, &failure), -ENOENT);
		assert_non_null(strstr(failure.text, "did you mean demo:twice?"));
		elf_file_release(&file);
	}
}

static void a_static_probe_with_a_semaphore(void **state)
{
	struct elf_file file = ELF_FILE_NONE;
	struct usdt_site *sites = NULL;
	uint64_t address, offset = 0;
	struct failure failure;
	size_t count = 0;

	(void)state;
	failure_init(&failure);
	if (run(NULL, TEST_CC " -O2 -o guarded %sguarded.c", SOURCES) != 0)
		skip();
	open_file("guarded", &file);
	assert_int_equal(usdt_find(&file, "demo", "guarded", &sites, &count, &failure), 0);
	assert_int_equal(count, 1);
	assert_int_equal(elf_file_address(&file, "demo_guarded_semaphore", &address), 0);
	assert_int_equal(elf_file_offset(&file, address, false, &offset), 0);
	assert_int_equal(sites[0].ref_offset, offset);
	assert_true(offset != 0);
	free(sites);
	elf_file_release(&file);
}

static void a_file_without_static_probes(void **state)
{
	struct elf_file file = ELF_FILE_NONE;
	struct usdt_site *sites;
	struct failure failure;
	size_t count;

	(void)state;
	failure_init(&failure);
	open_file("pie", &file);
	assert_int_equal(usdt_find(&file, "demo", "x", &sites, &count, &failure), -ENOENT);
	assert_non_null(strstr(failure.text, "no static probes"));
	elf_file_release(&file);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	return run(NULL,
		TEST_CC " -O1 -fPIE -pie -o pie %1$sprobed.c -ldl && cp pie stripped && strip stripped && "
		TEST_CC " -O1 -fPIC -shared -Wl,--version-script=%1$slibrary.map -o library.so %1$slibrary.c && "
		"cp library.so stripped.so && strip stripped.so && "
		TEST_CC " -O1 -c -DNUMBER=1 -DCALLER=one -o one.o %1$stwins.c && "
		TEST_CC " -O1 -c -DNUMBER=2 -DCALLER=main -o two.o %1$stwins.c && " TEST_CC " -o twins one.o two.o", SOURCES);
}

static int remove_folder(void **state)
{
	(void)state;
	return run(NULL, "rm -rf %s", folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_of_each_kind), cmocka_unit_test(a_library_with_versions),
		cmocka_unit_test(a_symbol_and_an_offset), cmocka_unit_test(symbols_that_will_not_do),
		cmocka_unit_test(names_in_a_debug_file), cmocka_unit_test(offsets_in_the_file), cmocka_unit_test(instructions_begin_here),
		cmocka_unit_test(links_and_other_paths),
		cmocka_unit_test(files_that_will_not_do), cmocka_unit_test(a_file_that_others_may_not_read),
		cmocka_unit_test(go_programs_are_known), cmocka_unit_test(damaged_files),
		cmocka_unit_test(a_static_probe_at_two_places), cmocka_unit_test(a_static_probe_with_a_semaphore),
		cmocka_unit_test(a_file_without_static_probes),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
