/* The helper: a process that the reader forks before it gives up its capabilities, and that keeps two of them, to look
 * into other users' processes. It waits for one kind of request, a rundown, and has no other input.
 *
 * What the router asks for by itself, names and ids, the helper reads; nothing in that can block. What a consumer
 * asks for may take long, or hang in another's broken file system: for that it forks a child, which ends with its
 * work, and is ended after a while. */
#ifndef TRACEFAN_READER_HELPER_H
#define TRACEFAN_READER_HELPER_H

#include "base/confine/confine.h"
#include "reader/loop.h"
#include "reader/rundown.h"

#include <stdint.h>
#include <sys/types.h>

/* Rundowns that may be under way. */
#define HELPER_PENDING_MAX 16
/* Of these, for consumers; the rest is for the router's own. */
#define HELPER_CHILDREN_MAX 12

/* Who asked: the router of then may have been followed by another. */
struct helper_asker {
	uint64_t router; /* counts them */
	uint64_t cookie; /* of its request */
};

/* Both blobs, which are closed afterwards, or an -errno. */
typedef void helper_done_fn(void *context, const struct helper_asker *asker, int error, const int fds[2]);

struct helper {
	int fd; /* -1: there is none */
	pid_t process;
	struct loop *loop;
	struct loop_watch watch;
	struct {
		uint64_t number; /* 0: free */
		struct helper_asker asker;
		pid_t child;
	} pending[HELPER_PENDING_MAX];
	uint64_t last_number;
	helper_done_fn *done;
	/* A child was forked, which waits until this has returned; and it is gone. */
	void (*child)(void *context, pid_t child, bool gone);
	void *context;
};

/* Forks the helper, which becomes this user. Before anything that it should not have is open. Returns 0 or -errno. */
int helper_start(struct helper *helper, uid_t uid, enum confine_mode mode);
/* Waits for its answers in the loop. */
int helper_watch(struct helper *helper, struct loop *loop);
/* Lets it end. */
void helper_close(struct helper *helper);

/* Asks for a rundown; `done` is called with who asked. `child`: by a process of its own. Returns 0, -EBUSY (too many
 * are under way) or -ENOTCONN (there is no helper). */
int helper_ask(struct helper *helper, const struct rundown_request *request, bool child, const struct helper_asker *asker);

/* ---- between the reader and the helper ---- */

enum helper_kind {
	HELPER_ASK = 1,     /* reader: number, child, request */
	HELPER_GO = 2,      /* reader: the child of `number` may begin */
	HELPER_STARTED = 3, /* helper: number, process: a child waits for HELPER_GO */
	HELPER_DONE = 4,    /* helper: number, error; 0: + fds: the table, the details */
};

struct helper_message {
	uint32_t kind; /* enum helper_kind */
	int32_t error;
	uint64_t number;
	int32_t process;
	uint32_t child;
	struct rundown_request request;
};

int helper_send(int fd, const struct helper_message *message, const int fds[2]);
/* Returns 1, 0 (the other end is closed) or -errno. `ret_fds` are -1 where there are none. */
int helper_receive(int fd, struct helper_message *ret, int ret_fds[2]);

/* The helper's whole life, on its end of the socket. */
void helper_serve(int fd, uid_t uid, enum confine_mode mode) __attribute__((noreturn));

#endif
