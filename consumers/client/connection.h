/* One connection to a session: socket, ring, the descriptor to poll, the traces. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_CONNECTION_H
#define TRACEFAN_CONSUMERS_CLIENT_CONNECTION_H

#include "consumers/client/binding.h"
#include "consumers/client/capture.h"
#include "consumers/client/clock_model.h"
#include "consumers/client/comeback.h"
#include "consumers/client/consumers.h"
#include "consumers/client/event.h"
#include "consumers/client/failure.h"
#include "consumers/client/trace.h"
#include "shm/control.h"
#include "shm/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tfan {
	struct failure failure;
	int socket, epoll;
	int folder; /* of the session's sockets */
	bool attached; /* `ring` is one */
	/* Set when tfan_next found nothing and announced sleep, at the ring's position asleep_at: the router
	 * signals with the next record. Until something is read, asking again costs no announcement. */
	bool asleep;
	uint64_t asleep_at;
	/* With an interval: the timer runs, and sleep is not announced before it has run out. Holds until something
	 * is read, at position pacing_at. */
	unsigned int interval; /* ms, 0: none */
	int timer;             /* -1 without an interval */
	bool pacing;
	uint64_t pacing_at;
	/* Something is to be done before the next record is taken: bury closed traces, deliver a record that
	 * was kept, or say why there is none. */
	bool pending;
	bool ended;    /* the end record has been delivered, or the connection broke */
	int broken;    /* -errno that every later tfan_next returns; 0: none */
	uint64_t cookie;
	struct ring_reader ring;
	struct tfan_event event;
	uint64_t overwritten; /* of ring.lost_events, what has been told */
	struct clock_model clock;
	uint64_t clock_ahead; /* this process's CLOCK_MONOTONIC of the session's, modulo 2^64 */
	struct symbols *symbols; /* owned; NULL: no frame was named yet */

	struct trace_index index;
	struct tfan_trace **traces; /* in the order of their making */
	size_t trace_count, trace_room;
	struct tfan_trace **closed; /* see trace_bury */
	size_t closed_count, closed_room;

	struct comeback comeback;
	struct capture capture;
	bool processes; /* events tell of theirs */
	struct control_attach attach; /* as the options ask for it */
	char program[CONTROL_NAME_MAX];
	int (*wait)(void *context, int fd, int milliseconds, bool readerless); /* NULL: it is waited here */
	void *wait_context;
	bool readerless, readerless_told; /* by the welcome; of the ring's word */
	unsigned int patience; /* ms, 0: no end to it */
	bool only_look; /* greeted, and not attached */
	bool no_return, leaving; /* leaving: the router has closed, and the ring is looked at once more */
	unsigned int flushes; /* asked for, and their records not read yet */

	struct tfan_session session;
	char session_name[CONTROL_NAME_MAX];
	struct ledger_session end_ledger; /* valid once has_end_ledger */
	bool has_end_ledger;
	char *list; /* what tfan_list returned last */
	struct consumer_list *consumers; /* owned; of the last tfan_consumers */
	struct control_explained *explained; /* owned; of the last tfan_trace_explain */
	bool all_events, force;
	void (*notice)(void *context, const struct tfan_event *event); /* see tfan_set_notice */
	void *notice_context;
	struct binding_strings strings; /* of the structure that a handler holds */
	void (*logger)(void *context, int level, const char *text);
	void *logger_context;
};

/* Sends a request, whose header is filled in here, and waits for its checked reply. Returns 0 or -errno
 * with the failure set; what the reply's status says is the caller's to look at. */
int connection_call(struct tfan *tfan, uint16_t type, void *request, uint32_t size, int fd,
	struct control_message *ret);

/* The same for requests that are answered by control_status: a status other than 0 is a failure, too.
 * With `ret_fd` the reply must bring one descriptor, which is then the caller's. */
int connection_ask(struct tfan *tfan, uint16_t type, void *request, uint32_t size, int *ret_fd);

/* Waits until the session has sent something. Returns 0, -EAGAIN (`milliseconds`, -1: none, are over) or what the
 * caller's own wait gave up with. */
int connection_wait(struct tfan *tfan, int milliseconds);
/* What was waited for did not come: no answer to come can be told from the next one's. Returns -errno with the failure set. */
int connection_give_up(struct tfan *tfan, int rc);
/* Fails if the session's reader is dead; returns 0 or -errno. */
int connection_need_reader(struct tfan *tfan);
/* Tells the logger once when the reader has died. */
void connection_note_reader(struct tfan *tfan);

/* Sets the failure for what control_call or control_receive returned; returns it. */
int connection_failed(struct tfan *tfan, int rc);

/* A note for the caller's logger. */
void connection_note(struct tfan *tfan, enum tfan_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
