/* What /proc says, in the ways in which programs may make it hard to read. */
#include "reader/build_id.h"
#include "reader/proc_text.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define REST " S 7 42 42 0 -1 4194304 97 0 0 0 0 0 0 0 20 0 3 0 110897 3133440\n"

static int stat_of(const char *text, struct proc_stat *ret)
{
	return proc_stat_parse(text, strlen(text), ret);
}

static void test_stat(void **state)
{
	struct proc_stat stat;

	(void)state;
	assert_int_equal(stat_of("42 (cat)" REST, &stat), 0);
	assert_int_equal(stat.id, 42);
	assert_int_equal(stat.parent, 7);
	assert_int_equal(stat.start, 110897);
	assert_int_equal(stat.threads, 3);
	assert_string_equal(stat.comm, "cat");
	assert_false(stat.is_kernel || stat.has_ended);
	/* A name that looks like the rest of the line. */
	assert_int_equal(stat_of("42 (a) S 1 (b\nc)" REST, &stat), 0);
	assert_string_equal(stat.comm, "a) S 1 (b\nc");
	assert_int_equal(stat.parent, 7);
	assert_int_equal(stat_of("42 ()" REST, &stat), 0);
	assert_string_equal(stat.comm, "");
	/* A worker's name without its work; a rescuer's whole. */
	assert_int_equal(stat_of("9 (kworker/0:1H-kblockd) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 0 0 1 0 5 0\n", &stat), 0);
	assert_string_equal(stat.comm, "kworker/0:1H");
	assert_true(stat.is_kernel);
	assert_int_equal(stat_of("9 (kworker/R-rcu_g) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 0 0 1 0 5 0\n", &stat), 0);
	assert_string_equal(stat.comm, "kworker/R-rcu_g");
	/* Ended alone, and ended before its other threads. */
	assert_int_equal(stat_of("42 (x) Z 7 42 42 0 -1 4194304 97 0 0 0 0 0 0 0 20 0 1 0 5 0\n", &stat), 0);
	assert_true(stat.has_ended);
	assert_int_equal(stat_of("42 (x) Z 7 42 42 0 -1 4194304 97 0 0 0 0 0 0 0 20 0 2 0 5 0\n", &stat), 0);
	assert_false(stat.has_ended);
	assert_int_equal(stat_of("", &stat), -EBADMSG);
	assert_int_equal(stat_of("42 (x) S 7 42 42 0 -1 4194304 97 0 0", &stat), -EBADMSG);
	assert_int_equal(stat_of("99999999999 (x)" REST, &stat), -EBADMSG);
}

static void test_status(void **state)
{
	static const char text[] = "Name:\ta\\nUid:\t5\nTgid:\t42\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nNoNewPrivs:\t1\n";
	struct proc_status status;

	(void)state;
	assert_int_equal(proc_status_parse(text, strlen(text), &status), 0);
	assert_int_equal(status.process, 42);
	assert_int_equal(status.ids.uid, 1);
	assert_int_equal(status.ids.euid, 2);
	assert_int_equal(status.ids.suid, 3);
	assert_int_equal(status.ids.gid, 5);
	assert_int_equal(status.ids.egid, 6);
	assert_true(status.no_new_ids);
	assert_int_equal(proc_status_parse("Tgid:\t1\nUid:\t1\t2\n", 17, &status), -EBADMSG);
}

static void test_cgroup(void **state)
{
	static const char text[] = "4:memory:/0::/no\n0::/a b\n";
	const char *path;
	size_t size;

	(void)state;
	assert_int_equal(proc_cgroup_parse(text, strlen(text), &path, &size), 0);
	assert_int_equal(size, 4);
	assert_memory_equal(path, "/a b", 4);
	assert_int_equal(proc_cgroup_parse(text, 17, &path, &size), -ENOENT);
}

static void test_maps(void **state)
{
	static const char text[] =
		"55e3c1000000-55e3c10f0000 r-xp 0002f000 fd:01 1234                       /usr/bin/a b (deleted)\n"
		"7ffe0000-7ffe1000 rw-p 00000000 00:00 0 \nnonsense\n";
	struct proc_mapping mapping;
	size_t at = 0;

	(void)state;
	assert_int_equal(proc_maps_next(text, strlen(text), &at, &mapping), 1);
	assert_true(mapping.executable);
	assert_int_equal(mapping.from, 0x55e3c1000000);
	assert_int_equal(mapping.to, 0x55e3c10f0000);
	assert_int_equal(mapping.offset, 0x2f000);
	assert_int_equal(mapping.major, 0xfd);
	assert_int_equal(mapping.inode, 1234);
	assert_int_equal(mapping.path_size, strlen("/usr/bin/a b (deleted)"));
	assert_memory_equal(mapping.path, "/usr/bin/a b (deleted)", mapping.path_size);
	assert_int_equal(proc_maps_next(text, strlen(text), &at, &mapping), 1);
	assert_false(mapping.executable);
	assert_int_equal(mapping.path_size, 0);
	assert_int_equal(proc_maps_next(text, strlen(text), &at, &mapping), -EBADMSG);
	assert_int_equal(proc_maps_next(text, strlen(text), &at, &mapping), 0);
}

static void test_sockets(void **state)
{
	static const char tcp[] = "  sl  local_address rem_address   st tx_queue\n"
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 1223 1 00 100 0 0 10 0\n"
		"   1: 00000000000000000000000001000000:0016 0:0 0A\n"
		"   2: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0050 01 0:0 0:0 0 0 0 99 1\n";
	static const char un[] = "Num       RefCount Protocol Flags    Type St Inode Path\n"
		"0: 3 0 0 0001 03   471\n0: 2 0 10000 0002 01 24577 @a b\n";
	static const uint8_t one[16] = { [15] = 1 };
	struct proc_socket socket;
	size_t at = 0;
	uint64_t inode;

	(void)state;
	assert_true(proc_net_next(tcp, strlen(tcp), &at, &socket));
	assert_memory_equal(socket.local.bytes, "\x7f\0\0\1", 4);
	assert_int_equal(socket.local.port, 8080);
	assert_int_equal(socket.state, 10);
	assert_int_equal(socket.inode, 1223);
	assert_true(proc_net_next(tcp, strlen(tcp), &at, &socket));
	assert_memory_equal(socket.local.bytes, one, 16);
	assert_int_equal(socket.local.port, 22);
	assert_int_equal(socket.remote.port, 80);
	assert_int_equal(socket.inode, 99);
	assert_false(proc_net_next(tcp, strlen(tcp), &at, &socket));
	at = 0;
	assert_true(proc_unix_next(un, strlen(un), &at, &socket));
	assert_int_equal(socket.inode, 471);
	assert_int_equal(socket.path_size, 0);
	assert_true(proc_unix_next(un, strlen(un), &at, &socket));
	assert_int_equal(socket.type, 2);
	assert_memory_equal(socket.path, "@a b", 4);
	assert_false(proc_unix_next(un, strlen(un), &at, &socket));

	assert_true(proc_link_is_socket("socket:[12]", 11, &inode));
	assert_int_equal(inode, 12);
	assert_false(proc_link_is_socket("socket:[12] (deleted)", 21, &inode));
	assert_false(proc_link_is_socket("/socket:[12]", 12, &inode));
}

/* This very program has one, by the default of its compiler or not at all; what is found is what stands there. */
static void test_build_id(void **state)
{
	static const struct {
		Elf64_Nhdr other;
		char other_name[4];
		uint8_t other_bytes[4];
		Elf64_Nhdr head;
		char name[4];
		uint8_t id[20];
	} notes = {
		{ 4, 4, 1 }, "GNU", { 9 }, { 4, 20, NT_GNU_BUILD_ID }, "GNU", { 1, 2, 3 },
	};
	struct build_id_segment segments[BUILD_ID_SEGMENTS];
	const uint8_t *id = NULL;
	uint8_t head[BUILD_ID_BYTES];
	FILE *self = fopen("/proc/self/exe", "re");

	(void)state;
	assert_int_equal(build_id_find(&notes, sizeof(notes), 4, &id), 20);
	assert_ptr_equal(id, notes.id);
	assert_int_equal(build_id_find(&notes, sizeof(notes) - 1, 4, &id), 0);
	assert_non_null(self);
	assert_int_equal(fread(head, 1, sizeof(head), self), sizeof(head));
	assert_true(build_id_segments(head, sizeof(head), segments) > 0);
	head[0] = 0;
	assert_int_equal(build_id_segments(head, sizeof(head), segments), -EBADMSG);
	assert_int_equal(fclose(self), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_sockets),
		cmocka_unit_test(test_build_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
