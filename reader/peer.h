/* A control connection: the router's, or an operator's. */
#ifndef TRACEFAN_READER_PEER_H
#define TRACEFAN_READER_PEER_H

#include "reader/loop.h"
#include "shm/control.h"

#include <stdbool.h>
#include <sys/types.h>

struct peer_unsent;

struct peer {
	int fd; /* -1: nobody */
	pid_t pid;
	struct loop *loop;
	struct loop_watch watch;
	/* Handles one checked message; anything but 0 closes the peer. */
	int (*handle)(void *context, struct peer *peer, struct control_message *message);
	void (*gone)(void *context, struct peer *peer);
	void *context;
	/* Replies that the peer has not made room for yet; no request is read meanwhile. */
	struct peer_unsent *unsent;
	uint64_t stop_cookie; /* an operator who waits for the session's end */
	bool stop_waits;
};

/* Accepts a connection from one of two users. Returns the descriptor, owned by the caller; -EACCES
 * when somebody else connected, -EAGAIN when nobody did, or another -errno. */
int peer_accept(int listener, uid_t user, uid_t other, pid_t *ret_pid);

/* Takes the connection over and waits for its messages. Returns 0 or -errno, the descriptor then
 * stays the caller's. */
int peer_open(struct peer *peer, struct loop *loop, int fd, pid_t pid);
void peer_close(struct peer *peer);
/* True when the other end has closed, even if the loop hasn't come to it yet. */
bool peer_is_gone(const struct peer *peer);

/* Sends, or keeps for later, one reply. Descriptors stay the caller's. 0 or -errno: the peer can't
 * be served. */
int peer_reply(struct peer *peer, const void *message, const int *fds, unsigned int fd_count);

/* The same for a reply that comes some time after its request. */
int peer_reply_late(
	struct peer *peer, const void *message, const int *fds, unsigned int fd_count);

/* The common reply: a status, and why. `failure` may be NULL for EXIT_DONE. */
int peer_status(struct peer *peer, const struct control_header *request, int status,
	const struct control_failure *failure);

#endif
