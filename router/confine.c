/* The router's table. docs/trust.md shows the same rows; a test compares them. */
#include "router/confine.h"

#include "base/checked.h"
#include "base/confine/confine_calls.h"
#include "base/confine/confine_landlock.h"
#include "base/log.h"
#include "base/process.h"

#include <fcntl.h>
#include <string.h>

static const struct confine_call router_calls[] = {
	{ "epoll_create1", "its one place to wait" },
	{ "epoll_ctl", "the same" },
	{ "epoll_wait", "the same" },
	{ "epoll_pwait", "the same, by other C libraries" },
	{ "signalfd4", "SIGTERM and SIGINT as events" },
	{ "accept4", "consumers connect" },
	{ "recvmsg", "requests, with descriptors" },
	{ "sendmsg", "answers, with descriptors" },
	{ "sendto", "readiness" },
	{ "shutdown", "a reader that takes over and is not to be believed" },
	{ "getsockopt", "who is behind a consumer's socket" },
	{ "read", "signals, wake-ups" },
	{ "pread64", "blobs of the reader's" },
	{ "close", "what was received" },
	{ "fcntl", "copies of descriptors to pass on, seals, sizes of pipes" },
	{ "fstat", "sizes of received segments" },
	{ "newfstatat", "the same, by other C libraries" },
	{ "fstatfs", "whether a received segment is of memory" },
	{ "memfd_create", "rings and schemas for consumers" },
	{ "ftruncate", "the same; the log, when it is full" },
	{ "pipe2", "wake-ups for consumers" },
	{ "getrandom", "malloc(3)" },
};

static int enter_landlock(enum confine_mode mode)
{
	struct confine_landlock landlock;
	int r = confine_landlock_open(&landlock);

	if (r < 0)
		return confine_lacks(mode, "landlock", r);
	if (confine_calls_sanitizer_count)
		(void)confine_landlock_allow(&landlock, AT_FDCWD, "/", CONFINE_READ);
	r = confine_landlock_enter(&landlock);
	if (r < 0)
		log_error("landlock: %s", strerror(-r));
	return r;
}

int confine_router(uid_t uid, gid_t gid, enum confine_mode mode)
{
	int r = process_drop_ids(uid, gid);

	if (r == 0)
		r = process_drop_capabilities();
	if (r < 0) {
		log_error("becoming uid %u without capabilities: %s", uid, strerror(-r));
		return r;
	}
	r = enter_landlock(mode);
	if (r < 0)
		return r;
	r = confine_calls_enter(router_calls, ARRAY_SIZE(router_calls));
	return r < 0 ? confine_lacks(mode, "seccomp", r) : 0;
}
