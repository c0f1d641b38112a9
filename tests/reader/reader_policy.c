/* Who may do what, and whom the reader believes. */
#include "reader/policy.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "reader/policy_fetch.h"
#include "reader/policy_file.h"
#include "reader/policy_glob.h"
#include "reader/target_path.h"
#include "shm/control.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define GROUP 4711

static struct policy_identity user(uid_t uid, gid_t group)
{
	return (struct policy_identity){ .uid = uid, .groups = { uid, group }, .group_count = 2 };
}

/* The refusal's words, or NULL when it is allowed. */
static const char *refusal(const struct policy *policy, uid_t uid, gid_t group,
	struct policy_wish wish, struct policy_grant *ret_grant)
{
	static struct control_failure failure;
	struct policy_identity identity = user(uid, group);
	struct policy_grant grant = { 0 };

	if (policy_decide(policy, &identity, &wish, &grant, &failure)) {
		assert_int_equal(failure.error, EPERM);
		return failure.message;
	}
	if (ret_grant)
		*ret_grant = grant;
	return NULL;
}

#define WISH(kind, what, ...) ((struct policy_wish){ .place = (kind), .name = (what), __VA_ARGS__ })

static void test_without_a_file(void **state)
{
	const struct policy with_group = { .has_group = true, .group = GROUP }, without = { 0 },
			    replay = { .replay = true };
	const struct policy_wish attach = WISH(POLICY_TRACEPOINT, "sched:sched_switch"),
				 define = WISH(POLICY_UPROBE, "/bin/sh");
	const struct policy_identity stranger = user(1000, 7), member = user(1000, GROUP);
	struct control_failure failure;

	(void)state;
	assert_null(refusal(&with_group, 0, 0, define, NULL));
	assert_null(refusal(&without, 0, 0, define, NULL));
	assert_null(refusal(&without, 0, 0, attach, NULL));
	assert_null(refusal(&with_group, 1000, GROUP, attach, NULL));
	assert_null(refusal(&with_group, GROUP, 7, attach, NULL));
	assert_null(refusal(&replay, 1000, 7, define, NULL));
	assert_non_null(
		strstr(refusal(&with_group, 1000, GROUP, define, NULL), "\"define: root\""));
	assert_non_null(strstr(refusal(&with_group, 1000, 7, attach, NULL), "\"attach: group\""));
	assert_non_null(strstr(refusal(&without, 1000, GROUP, attach, NULL), "\"attach: root\""));
	/* Group 0 is no other group than the session's by accident. */
	assert_non_null(refusal(&without, 1, 0, attach, NULL));
	assert_int_equal(policy_admit(&with_group, &member, &failure), EXIT_DONE);
	assert_int_equal(policy_admit(&with_group, &stranger, &failure), EXIT_NOT_PERMITTED);
	assert_int_equal(policy_admit(&replay, &stranger, &failure), EXIT_DONE);
	assert_int_equal(policy_limits_of(&with_group, &member)->consumers, 64);
	assert_int_equal(policy_limits_of(&with_group, &(struct policy_identity){ 0 })->consumers,
		UINT32_MAX);
}

static const char file_text[] = "# a comment\n"
				"deny user=1000 uprobe:/opt/app/secret # ours\n"
				"allow user=1000 uprobe:/opt/app/* rate=7 scope=own\n"
				"\n"
				"allow user=1000 kprobe:do_sys_open*\n"
				"allow\tgroup=4711   kprobe:* fetch=memory\n"
				"allow group=4711 tracepoint:sched:* kernel-addresses=yes\n"
				"allow user=1001 uprobe:/usr/bin/perl fetch=none\n"
				"allow user=1001 usdt:/lib/** semaphore=yes\n"
				"limit user=1000 probes=3\n"
				"limit everyone consumers=2 ring=64K rate=1000";

static void parse(const char *text, struct policy *ret)
{
	struct policy_error error = { .message = "" };
	int r = policy_parse("/p", text, strlen(text), ret, &error);

	if (r < 0)
		fail_msg("line %u: %s", error.line, error.message);
}

static void expect(const char *words, const char *said)
{
	if (!said || !strstr(said, words))
		fail_msg("not \"%s\" in \"%s\"", words, said ? said : "(allowed)");
}

static void test_rules_decide(void **state)
{
	struct policy policy;
	struct policy_grant grant = { 0 };

	(void)state;
	parse(file_text, &policy);
	assert_int_equal(policy.rule_count, 7);
	assert_null(refusal(&policy, 1000, 7,
		WISH(POLICY_UPROBE, "/opt/app/x", .fetch = POLICY_FETCH_MEMORY), &grant));
	assert_true(grant.own && grant.rate == 7);
	expect("/p, line 2: \"deny user=1000 uprobe:/opt/app/secret # ours\" denies it",
		refusal(&policy, 1000, 7, WISH(POLICY_UPROBE, "/opt/app/secret"), NULL));
	expect("no line of /p allows uprobe:/opt/app/lib/x",
		refusal(&policy, 1000, 7, WISH(POLICY_UPROBE, "/opt/app/lib/x"), NULL));
	/* A place of another kind is another place. */
	expect("no line", refusal(&policy, 1000, 7, WISH(POLICY_USDT, "/opt/app/x"), NULL));
	expect("line 3",
		refusal(&policy, 1000, 7, WISH(POLICY_UPROBE, "/opt/app/x", .linked = true), NULL));
	expect("line 5",
		refusal(&policy, 1000, 7,
			WISH(POLICY_KPROBE, "do_sys_openat2", .fetch = POLICY_FETCH_MEMORY), NULL));
	assert_null(refusal(&policy, 1000, 7,
		WISH(POLICY_KPROBE, "do_sys_openat2", .fetch = POLICY_FETCH_REGISTERS), NULL));
	expect("line 5: \"allow user=1000 kprobe:do_sys_open*\": an offset",
		refusal(&policy, 1000, 7, WISH(POLICY_KPROBE, "do_sys_openat2", .offset = true),
			NULL));
	assert_null(refusal(&policy, 5, GROUP,
		WISH(POLICY_KPROBE, "vfs_read", .offset = true, .fetch = POLICY_FETCH_MEMORY),
		NULL));
	/* The first line that speaks of user and place decides, although the second allows more. */
	expect("line 5",
		refusal(&policy, 1000, GROUP,
			WISH(POLICY_KPROBE, "do_sys_openat2", .fetch = POLICY_FETCH_MEMORY), NULL));
	assert_null(
		refusal(&policy, 5, GROUP, WISH(POLICY_TRACEPOINT, "sched:sched_switch"), &grant));
	assert_true(!grant.own && !grant.rate);
	expect("no line",
		refusal(&policy, 5, GROUP, WISH(POLICY_TRACEPOINT, "task:task_rename"), NULL));
	expect("no line",
		refusal(&policy, 5, 7, WISH(POLICY_TRACEPOINT, "sched:sched_switch"), NULL));
	/* The kernel's addresses go to whom a line gives them. */
	assert_null(refusal(&policy, 5, GROUP,
		WISH(POLICY_TRACEPOINT, "sched:sched_switch", .addresses = true), NULL));
	expect("kernel-addresses=yes",
		refusal(&policy, 1000, 7, WISH(POLICY_KPROBE, "do_sys_openat2", .addresses = true),
			NULL));
	/* The file itself is named, so its other names don't matter. */
	assert_null(refusal(
		&policy, 1001, 7, WISH(POLICY_UPROBE, "/usr/bin/perl", .linked = true), NULL));
	expect("no fetch arguments",
		refusal(&policy, 1001, 7,
			WISH(POLICY_UPROBE, "/usr/bin/perl", .fetch = POLICY_FETCH_REGISTERS),
			NULL));
	assert_null(refusal(
		&policy, 1001, 7, WISH(POLICY_USDT, "/lib/a/b.so", .semaphore = true), NULL));
	expect("semaphore", refusal(&policy, 1001, 7,
				    WISH(POLICY_UPROBE, "/usr/bin/perl", .semaphore = true), NULL));
	assert_null(refusal(&policy, 0, 0, WISH(POLICY_UPROBE, "/opt/app/secret"), NULL));
	policy_release(&policy);
}

static void test_who_is_admitted_and_limited(void **state)
{
	const struct policy_identity one = user(1000, 7), other = user(5, 7),
				     member = user(5, GROUP);
	struct control_failure failure;
	struct policy policy;

	(void)state;
	parse(file_text, &policy);
	assert_int_equal(policy_admit(&policy, &one, &failure), EXIT_DONE);
	assert_int_equal(policy_admit(&policy, &member, &failure), EXIT_DONE);
	assert_int_equal(policy_admit(&policy, &other, &failure), EXIT_NOT_PERMITTED);
	expect("/p", failure.message);
	assert_int_equal(policy_limits_of(&policy, &one)->probes, 3);
	assert_int_equal(policy_limits_of(&policy, &one)->consumers, 64);
	assert_int_equal(policy_limits_of(&policy, &one)->line, 10);
	assert_int_equal(policy_limits_of(&policy, &other)->consumers, 2);
	assert_int_equal(policy_limits_of(&policy, &other)->ring, 65536);
	assert_int_equal(policy_limits_of(&policy, &other)->rate, 1000);
	assert_int_equal(policy_limits_of(&policy, &other)->line, 11);
	policy_release(&policy);
}

/* Each error has its line, and says what would be right. */
static void test_wrong_lines(void **state)
{
	static const struct {
		const char *text;
		unsigned int line;
		const char *words;
	} wrong[] = {
		{ "permit everyone kprobe:*", 1, "begins with allow, deny or limit" },
		{ "\n\nallow", 3, "who is meant" },
		{ "allow bob kprobe:*", 1, "user=NAME, group=NAME" },
		{ "allow user= kprobe:*", 1, "names nobody" },
		{ "allow user=12x kprobe:*", 1, "number" },
		{ "allow user=4294967295 kprobe:*", 1, "number" },
		{ "allow everyone", 1, "which probes" },
		{ "allow everyone kprobe:", 1, "which probes" },
		{ "allow everyone kretprobe:x", 1, "which probes" },
		{ "allow everyone tracepoint:sched", 1, "SYSTEM:EVENT" },
		{ "allow everyone uprobe:opt/x", 1, "begins with '/'" },
		{ "allow everyone uprobe:*/x", 1, "begins with '/'" },
		{ "allow everyone kprobe:* fetch=all", 1, "none, registers or memory" },
		{ "allow everyone kprobe:* scope=mine", 1, "all, own" },
		{ "allow everyone kprobe:* rate=0", 1, "rate" },
		{ "allow everyone kprobe:* rate=1e3", 1, "rate" },
		{ "allow everyone kprobe:* semaphore=yes", 1, "only usdt" },
		{ "allow everyone tracepoint:*:* fetch=none", 1, "no fetch arguments" },
		{ "allow everyone kprobe:* kernel-addresses=all", 1, "no, yes" },
		{ "allow everyone kprobe:* kernel-addresses", 1, "and kernel-addresses=" },
		{ "allow everyone kprobe:* kernel-addresses=yes kernel-addresses=no", 1, "stands twice" },
		{ "allow everyone kprobe:* retch=none", 1, "none of fetch=" },
		{ "allow everyone tracepoint:sched:* scope=own scope=all", 1, "scope= stands twice" },
		{ "allow everyone kprobe:* rate=50 fetch=none rate=50", 1, "rate= stands twice" },
		{ "deny everyone kprobe:* fetch=none", 1, "deny line ends" },
		{ "limit everyone", 1, "a limit on what" },
		{ "limit everyone cpus=3", 1, "none of consumers=" },
		{ "limit everyone ring=64M probes=3 ring=1M", 1, "ring= stands twice" },
		{ "limit everyone ring=lots", 1, "64M" },
		{ "# fine\nallow everyone kprobe:x\033[2J", 2,
			"control character (0x1b) in column 24" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct policy_error error = { .message = "" };
		struct policy policy;

		assert_int_equal(
			policy_parse("/p", wrong[i].text, strlen(wrong[i].text), &policy, &error),
			-EINVAL);
		assert_int_equal(error.line, wrong[i].line);
		expect(wrong[i].words, error.message);
	}
}

static void test_globs(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool matches;
	} globs[] = {
		{ "/opt/app/*", "/opt/app/x", true },
		{ "/opt/app/*", "/opt/app/", true },
		{ "/opt/app/*", "/opt/app/x/y", false },
		{ "/opt/app/*", "/opt/app", false },
		{ "/opt/app/*", "/opt/apple/x", false },
		{ "/opt/app/**", "/opt/app/x/y", true },
		{ "/opt/*/bin", "/opt/a/bin", true },
		{ "/opt/*/bin", "/opt/a/b/bin", false },
		{ "/opt/**/bin", "/opt/a/b/bin", true },
		{ "/opt/**/bin/*", "/opt/bin/bin/x", true },
		{ "**/x*y", "/a/xb/xcy", true },
		{ "**/x*y", "/a/xb/c/xc/y", false },
		{ "**", "/a/b", true },
		{ "*", "", true },
		{ "", "", true },
		{ "", "a", false },
		{ "a?c", "abc", true },
		{ "a?c", "a/c", false },
		{ "a?", "a", false },
		{ "*a*b*c", "xxaxxbxxabcc", true },
		{ "*a*b*c", "xxaxxcxxb", false },
		{ "do_sys_open*", "do_sys_openat2", true },
		{ "*:*", "sched:sched_switch", true },
		{ "[a]", "a", false },
		{ "[a]", "[a]", true },
		{ "***x", "a/bx", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++) {
		if (policy_glob(globs[i].pattern, globs[i].name) != globs[i].matches)
			fail_msg("%s against %s", globs[i].pattern, globs[i].name);
	}
}

static void test_what_arguments_read(void **state)
{
	static const char *const registers[] = { "a=%di", "a=%ax:u64", "a=$retval:s32", "a=$arg1",
		"a=$arg12:x8", "a=$comm", "a=$comm:string", "a=$stack", "a=\\1", "a=\\-0x1f:u8",
		"a=%di:b4@0/8" };
	static const char *const memory[] = { "a=+0(%di)", "a=-8(%sp):u8", "a=@0xffffffff81000000",
		"a=@jiffies", "a=%di:string", "a=$arg1:ustring", "a=$arg1:symstr", "a=$stack1",
		"a=$arg1:u8[4]", "a=$arg*", "$arg*", "a=skb->len", "a=%di:unknown",
		"a=", "a=+u0(%si):ustring", "a=\\\"text\"", "a=$retval:string", "a=%", "a=$argx",
		"a=%di:u8:string", "a=%di:b", "a=$current" };
	char two[64] = "a=%di\0b=+0(%si)";

	(void)state;
	assert_int_equal(policy_fetch_needed("", 0), POLICY_FETCH_NONE);
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		if (policy_fetch_needed(registers[i], 1) != POLICY_FETCH_REGISTERS)
			fail_msg("%s", registers[i]);
	}
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
		if (policy_fetch_needed(memory[i], 1) != POLICY_FETCH_MEMORY)
			fail_msg("%s", memory[i]);
	}
	assert_int_equal(policy_fetch_needed(two, 2), POLICY_FETCH_MEMORY);
	assert_int_equal(policy_fetch_needed(two, 1), POLICY_FETCH_REGISTERS);
}

/* ---- files ---- */

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void test_files_that_others_could_change(void **state)
{
	char folder[] = "/tmp/tracefan-policy-XXXXXX", path[64];
	struct policy_error error;
	struct policy policy;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/policy", folder);
	assert_int_equal(policy_file_read(path, getuid(), &policy, &error), -ENOENT);
	write_file(path, "allow group=0 kprobe:*\nallow user=root kprobe:*\n", 0644);
	assert_int_equal(policy_file_read(path, getuid(), &policy, &error), 0);
	assert_int_equal(policy.rules[1].subject.id, 0);
	policy_release(&policy);
	assert_int_equal(chmod(path, 0664), 0);
	assert_int_equal(policy_file_read(path, getuid(), &policy, &error), -EPERM);
	expect("chmod go-w", error.message);
	assert_int_equal(chmod(path, 0646), 0);
	assert_int_equal(policy_file_read(path, getuid(), &policy, &error), -EPERM);
	assert_int_equal(chmod(path, 0600), 0);
	if (getuid() == 0) {
		assert_int_equal(chown(path, 4711, 0), 0);
		assert_int_equal(policy_file_read(path, 0, &policy, &error), -EPERM);
		expect("chown root", error.message);
		assert_int_equal(chown(path, 0, 0), 0);
	}
	write_file(path, "\nallow user=no-such-user-here kprobe:*\n", 0600);
	assert_int_equal(policy_file_read(path, getuid(), &policy, &error), -EINVAL);
	assert_int_equal(error.line, 2);
	expect("no user \"no-such-user-here\"", error.message);
	assert_int_equal(policy_file_read(folder, getuid(), &policy, &error), -EINVAL);
	unlink(path);
	rmdir(folder);
}

/* True when the open file has the name `path`, by which it can be found again. */
static bool proves(int fd, const char *path, bool *ret_linked)
{
	char found[PATH_MAX];
	int r = target_path(fd, found, sizeof(found), ret_linked);

	assert_true(r == 0 || r == -ESTALE);
	return r == 0 && !strcmp(found, path);
}

static void test_names_of_open_files(void **state)
{
	char folder[] = "/tmp/tracefan-policy-XXXXXX", path[64], link_path[64], other[64];
	bool linked = true;
	int fd, through;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(link_path, sizeof(link_path), "%s/link", folder);
	snprintf(other, sizeof(other), "%s/other (deleted)", folder);
	write_file(path, "x", 0644);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(proves(fd, path, &linked));
	assert_false(linked);
	/* By whichever way it was opened, the name is the file's own. */
	assert_int_equal(symlink(path, link_path), 0);
	through = open(link_path, O_RDONLY | O_CLOEXEC);
	assert_true(proves(through, path, &linked));
	assert_int_equal(unlink(link_path), 0);
	assert_int_equal(link(path, link_path), 0);
	assert_true(proves(fd, path, &linked));
	assert_true(linked);
	assert_int_equal(unlink(link_path), 0);
	/* Renamed: the new name. Removed, or covered by another file: none. */
	assert_int_equal(rename(path, other), 0);
	assert_true(proves(fd, other, &linked));
	assert_int_equal(rename(other, path), 0);
	assert_int_equal(unlink(path), 0);
	assert_false(proves(fd, path, &linked));
	write_file(other, "y", 0644);
	snprintf(link_path, sizeof(link_path), "%s/other", folder);
	close(through);
	write_file(link_path, "z", 0644);
	through = open(link_path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(unlink(link_path), 0);
	/* The kernel shows it as "other (deleted)", which there is. */
	assert_false(proves(through, other, &linked));
	unlink(other);
	close(through);
	close(fd);
	fd = memfd_create("/opt/app/x", MFD_CLOEXEC);
	assert_false(proves(fd, "/opt/app/x", &linked));
	close(fd);
	rmdir(folder);
}

/* A file that is called /opt/app/x, but in a mount namespace of somebody's own. */
static void test_names_of_another_mount_namespace(void **state)
{
	char folder[] = "/tmp/tracefan-policy-XXXXXX", path[64], link[32], shown[PATH_MAX];
	struct control_message message;
	bool linked;
	int pair[2], fd, status;
	ssize_t size;
	pid_t child;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	write_file(path, "the real one", 0644);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	child = fork();
	if (!child) {
		struct control_id note = { 0 };

		if (unshare(CLONE_NEWNS) < 0 ||
			mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
			mount("none", folder, "tmpfs", 0, NULL) < 0)
			_exit(77);
		write_file(path, "another", 0644);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		control_header_init(&note.header, CONTROL_LIST, sizeof(note), 1);
		close(pair[0]);
		/* Until the other end is closed. */
		_exit(control_send(pair[1], &note, &fd, 1) < 0 ||
			read(pair[1], &note, sizeof(note)) != 0);
	}
	close(pair[1]);
	/* While it lives, so that its mounts are there. */
	if (control_receive(pair[0], &message) == 1) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", message.fds[0]);
		size = readlink(link, shown, sizeof(shown));
		assert_int_equal(size, strlen(path));
		assert_memory_equal(shown, path, (size_t)size);
		assert_false(proves(message.fds[0], path, &linked));
		control_message_release(&message);
	} else {
		printf("the part with a mount namespace is left out: it needs root\n");
	}
	close(pair[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	unlink(path);
	rmdir(folder);
}

static int listen_at(const char *path, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static int connect_to(const char *path, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void test_only_the_sessions_socket_counts(void **state)
{
	char folder[] = "/tmp/tracefan-policy-XXXXXX", path[64], other[64];
	struct policy_identity identity;
	int listener, stranger, client, server, stray, stray_server, pair[2], file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/consumers.sock", folder);
	snprintf(other, sizeof(other), "%s/other.sock", folder);
	listener = listen_at(path, SOCK_SEQPACKET);
	stranger = listen_at(other, SOCK_SEQPACKET);
	client = connect_to(path, SOCK_SEQPACKET);
	server = accept(listener, NULL, NULL);
	stray = connect_to(other, SOCK_SEQPACKET);
	stray_server = accept(stranger, NULL, NULL);
	file = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(policy_identify(server, path, &identity), 0);
	assert_int_equal(identity.uid, getuid());
	assert_int_equal(identity.pid, getpid());
	assert_int_equal(identity.groups[0], getgid());
	assert_true(identity.group_count >= 1);

	assert_int_equal(policy_identify(stray_server, path, &identity), -EPROTO);
	assert_int_equal(policy_identify(client, path, &identity), -EPROTO);
	assert_int_equal(policy_identify(listener, path, &identity), -EPROTO);
	assert_int_equal(policy_identify(file, path, &identity), -EPROTO);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(policy_identify(pair[0], path, &identity), -EPROTO);
	close(pair[0]);
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(policy_identify(pair[0], path, &identity), -EPROTO);
	for (size_t i = 0; i < 2; i++)
		close(pair[i]);
	close(listener);
	close(stranger);
	close(client);
	close(server);
	close(stray);
	close(stray_server);
	close(file);
	unlink(path);
	unlink(other);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_file),
		cmocka_unit_test(test_rules_decide),
		cmocka_unit_test(test_who_is_admitted_and_limited),
		cmocka_unit_test(test_wrong_lines),
		cmocka_unit_test(test_globs),
		cmocka_unit_test(test_what_arguments_read),
		cmocka_unit_test(test_files_that_others_could_change),
		cmocka_unit_test(test_names_of_open_files),
		cmocka_unit_test(test_names_of_another_mount_namespace),
		cmocka_unit_test(test_only_the_sessions_socket_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
