/* A session under test: the real tracefan-reader as a child, and this process as its router. */
#ifndef TRACEFAN_TESTS_READER_SESSION_H
#define TRACEFAN_TESTS_READER_SESSION_H

#include "shm/control.h"
#include "shm/pool.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SESSION_ARGS_MAX 24
/* Far more than anything here takes; a test that reaches it has failed. */
#define SESSION_PATIENCE_MS 20000

struct session {
	char directory[64];
	char name[32];
	pid_t reader;
	int notify;    /* the readiness socket */
	int owner;     /* its owner's end of the pipe */
	int log;       /* the reader's standard error */
	int router;    /* our connection as the router, -1 before session_connect */
	int consumers; /* the consumers' listening socket */
	int facts, names;
	struct control_router_welcome welcome;
	struct pool_reader pool;
	bool has_pool;
	uint64_t cookie;
	/* What the stream said so far. */
	struct pool_entry sweep; /* the last POOL_SWEEP */
	uint64_t sweeps, busy, data, clocks, ends;
	uint64_t last_end;
	uint64_t flushed, accounted; /* cookies */
};

/* True where these tests can run; otherwise says why not on standard output. */
bool session_possible(void);

/* Where the reader under test lies. */
const char *session_program(void);

/* A test's setup: readers started from now on find no io_uring, whose system calls answer EPERM, as in many containers.
 * *state points to true. */
int session_without_uring(void **state);
/* And its teardown. */
int session_with_uring(void **state);

/* Readers started from now on run as this user, without any other group. */
void session_run_as(uid_t uid);

/* Starts `tracefan-reader --session NAME --directory DIR ARGS...`, ARGS ending with NULL, and waits
 * until it is ready. Returns true, or false when it ended instead (session_wait then has the
 * status). */
bool session_start(struct session *session, const char *const *args);
/* The same with a name and folder that the caller chose. */
bool session_start_at(
	struct session *session, const char *directory, const char *name, const char *const *args);

/* Connects as the router, says hello and attaches to the pool. */
void session_connect(struct session *session);
/* Connects and sends nothing. Returns the socket. */
int session_connect_socket(const struct session *session, const char *socket_name);
/* Closes the router's connection and detaches. */
void session_disconnect(struct session *session);
/* Waits until the reader says that no router is connected. */
void session_await_no_router(const struct session *session);

/* One request as the router; the reply is in *ret (release it). */
void session_call(struct session *session, void *request, uint16_t type, uint32_t size,
	const int *fds, unsigned int fd_count, struct control_message *ret);
/* The same for requests whose reply is a status: returns it. `ret` may be NULL. */
uint32_t session_status_call(struct session *session, void *request, uint16_t type, uint32_t size,
	const int *fds, unsigned int fd_count, struct control_failure *ret);

/* A consumer's request for a tracepoint. */
struct control_create session_tracepoint(const char *system, const char *event);

/* A consumer's connection: `ret_server` is the router's end, as accepted. */
void session_consumer(struct session *session, int *ret_client, int *ret_server);

/* Takes entries out of the stream until `done` says so or patience ends (then false); data goes
 * through `data`, if given, before its slot is returned. */
typedef void session_data_fn(void *context, const struct pool_entry *entry, const void *bytes);
bool session_read_until(struct session *session,
	bool (*done)(const struct session *session, void *context), session_data_fn *data,
	void *context);
/* Takes what is there now, and gives the slots back. */
void session_drain(struct session *session);

/* Waits for the reader's end and returns its exit status; the log goes to `ret_log`, if given. */
int session_wait(struct session *session, char *ret_log, size_t size);
/* SIGTERM, and reads the stream to its end meanwhile. Returns the exit status. */
int session_stop(struct session *session, session_data_fn *data, void *context);
/* Ends whatever is left of it, by force, and removes its traces. */
void session_release(struct session *session);

/* Writes a text to a file of the session's instance; returns 0 or -errno. */
int session_write(const struct session *session, const char *file, const char *text);
/* Reads one; the text is the caller's to free, NULL when there is none. */
char *session_read(const struct session *session, const char *file);

/* How often `text` stands in the bytes. */
unsigned int session_count(const void *bytes, size_t size, const char *text);

#endif
