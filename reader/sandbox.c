/* The reader's two tables. docs/trust.md shows the same rows; a test compares them. */
#include "reader/sandbox.h"

#include "base/checked.h"
#include "base/confine/confine_calls.h"
#include "base/confine/confine_landlock.h"
#include "base/log.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const struct confine_call reader_calls[] = {
	{ "io_uring_enter", "reading of the kernel's buffers, waiting" },
	{ "ppoll", "waiting where io_uring can't be had" },
	{ "poll", "which CPUs' buffers are empty" },
	{ "clock_nanosleep", "a pause before a removal is tried again" },
	{ "nanosleep", "the same, by other C libraries" },
	{ "accept4", "the router and operators connect" },
	{ "recvmsg", "requests, with descriptors" },
	{ "recvfrom", "a CPU came online" },
	{ "sendmsg", "answers, with descriptors" },
	{ "sendto", "readiness" },
	{ "getsockopt", "who is behind a consumer's socket, by the kernel's word" },
	{ "getsockname", "whether a socket is one of the session's" },
	{ "geteuid", "whether who connects to the control socket may" },
	{ "openat", "files of tracefs and /proc, as landlock lets it" },
	{ "read", "events as text, files of tracefs and /proc, signals, wake-ups" },
	{ "pread64", "recordings" },
	{ "pwrite64", "notes of its probes for the reader that takes over when this one dies" },
	{ "close", "what was opened or received" },
	{ "fcntl", "copies of descriptors to pass on, seals, modes of received ones, whether a read of text waits" },
	{ "fstat", "what a received descriptor stands for" },
	{ "newfstatat", "the same, by other C libraries; whether processes have the kernel's own numbers here" },
	{ "readlink", "what a file that is to be probed is called" },
	{ "readlinkat", "the same, by other C libraries" },
	{ "openat2", "whether it is called so, without a symbolic link on the way; opens nothing else than openat may" },
	{ "faccessat", "whether tracefs has an event" },
	{ "faccessat2", "the same, by other C libraries" },
	{ "getdents64", "the list of instances" },
	{ "memfd_create", "a blob for the router: formats, names, counts" },
	{ "ftruncate", "the same; the log, when it is full" },
	{ "getrandom", "names that can't be guessed; malloc(3)" },
	{ "unlinkat", "the session's sockets and folder at the end" },
	{ "rmdir", "the instance at the end" },
};

struct kept {
	const char *path;
	unsigned int access; /* enum confine_access */
	const char *why;
};

/* Below tracefs's top. */
static const struct kept tracefs_kept[] = {
	{ "uprobe_events", CONFINE_READ | CONFINE_WRITE, "probes of its own" },
	{ "kprobe_events", CONFINE_READ | CONFINE_WRITE, "probes of its own" },
	{ "dynamic_events", CONFINE_READ | CONFINE_WRITE, "event probes of its own" },
	{ "uprobe_profile", CONFINE_READ, "hits and misses of probes" },
	{ "kprobe_profile", CONFINE_READ, "hits and misses of probes" },
	{ "error_log", CONFINE_READ, "the kernel's words about a refused probe" },
	{ "printk_formats", CONFINE_READ, "texts behind addresses in events" },
	{ "available_events", CONFINE_READ, "what can be traced" },
	{ "instances", CONFINE_READ | CONFINE_REMOVE, "removal of its own; who else uses a probe" },
};

/* Anywhere. */
static const struct kept files_kept[] = {
	{ "/proc", CONFINE_READ, "threads that are kept out of the trace, how many there can be, which number comes next; who holds what is busy" },
};

static int allow(const struct confine_landlock *landlock, int at, const struct kept *kept, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = confine_landlock_allow(landlock, at, kept[i].path, kept[i].access);
	return r;
}

static int allow_all(const struct confine_landlock *landlock, const struct sandbox_folders *folders)
{
	int r = confine_landlock_allow(landlock, folders->session, "", CONFINE_REMOVE);

	/* Only empty ones can be removed; all others have a socket in them. */
	if (r == 0)
		r = confine_landlock_allow(landlock, folders->sessions, "", CONFINE_REMOVE);
	if (r == 0 && confine_calls_sanitizer_count)
		r = confine_landlock_allow(landlock, AT_FDCWD, "/", CONFINE_READ);
	if (r < 0 || folders->tracefs < 0)
		return r;
	r = allow(landlock, AT_FDCWD, files_kept, ARRAY_SIZE(files_kept));
	if (r == 0)
		r = allow(landlock, folders->tracefs, tracefs_kept, ARRAY_SIZE(tracefs_kept));
	if (r == 0)
		r = confine_landlock_allow(
			landlock, folders->instance, "", CONFINE_READ | CONFINE_WRITE);
	return r;
}

static int enter_landlock(const struct sandbox_folders *folders, enum confine_mode mode)
{
	struct confine_landlock landlock;
	int r = confine_landlock_open(&landlock);

	if (r < 0)
		return confine_lacks(mode, "landlock", r);
	r = allow_all(&landlock, folders);
	if (r < 0)
		log_error("landlock: %s", strerror(-r));
	else
		r = confine_landlock_enter(&landlock);
	return r;
}

/* tracefs asks for the uid of its files' owner and for no capability, so the uid stays and every
 * capability goes. */
int sandbox_enter(const struct sandbox_folders *folders, enum confine_mode mode)
{
	int r = process_drop_ids(geteuid(), getegid());

	/* A root that may not give up its groups keeps what they let it reach, which uid 0 reaches. */
	if (r == -EPERM)
		r = 0;
	if (r == 0)
		r = process_drop_capabilities();
	if (r < 0)
		log_error("giving up capabilities: %s", strerror(-r));
	if (r == 0)
		r = enter_landlock(folders, mode);
	if (r < 0)
		return r;
	r = confine_calls_enter(reader_calls, ARRAY_SIZE(reader_calls));
	return r < 0 ? confine_lacks(mode, "seccomp", r) : 0;
}
