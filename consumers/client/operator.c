/* The operator's side of a session: its reader's control socket. */
#include "consumers/client/failure.h"
#include "consumers/client/tracefan.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "shm/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

struct tfan_operator {
	struct failure failure;
	int socket;
	uint64_t cookie;
	unsigned int patience; /* ms; 0: for ever */
	pid_t reader;
	char name[CONTROL_NAME_MAX];
};

static int operator_connect_failed(struct tfan_operator *control, const char *directory, int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return failure_set(&control->failure, TFAN_MISSING, error, -1, "there is no session \"%s\" in %s",
			control->name, directory);
	case ECONNREFUSED:
		return failure_set(&control->failure, TFAN_MISSING, error, -1,
			"the reader of session \"%s\" in %s is dead: start it again with: tracefan session start %s", control->name,
			directory, control->name);
	case EAGAIN:
		return failure_set(&control->failure, TFAN_BUSY, error, -1,
			"the reader of session \"%s\" takes no more connections: it hangs or was stopped", control->name);
	case EACCES:
	case EPERM:
		return failure_set(&control->failure, TFAN_NOT_PERMITTED, error, -1,
			"operating session \"%s\" needs root: run it with sudo", control->name);
	default:
		return failure_set(&control->failure, TFAN_FAILED, error, -1, "can't reach session \"%s\" in %s: %s",
			control->name, directory, strerror(error));
	}
}

/* By the folder's descriptor, so that a path longer than a socket address holds is no matter. The session's name was
 * not checked: as one component of a path below `directory` it can do no harm. */
static int operator_connect(struct tfan_operator *control, const char *directory)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP_CLOSE int top = -1, folder = -1, fd = -1;
	struct ucred reader = { .pid = 0 };
	socklen_t size = sizeof(reader);
	int flags;

	if (strchr(control->name, '/') || control->name[0] == '.' || control->name[0] == '\0')
		return failure_set(&control->failure, TFAN_USAGE, EINVAL, -1, "\"%s\" is no name of a session", control->name);
	top = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return operator_connect_failed(control, directory, errno);
	folder = openat(top, control->name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return operator_connect_failed(control, directory, errno);
	/* Without waiting: the listener's queue holds those whom the reader has not accepted yet. */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return operator_connect_failed(control, directory, errno);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/control.sock", folder);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return operator_connect_failed(control, directory, errno);
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return operator_connect_failed(control, directory, errno);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &reader, &size) == 0)
		control->reader = reader.pid;
	control->socket = TAKE_FD(fd);
	return 0;
}

int tfan_operator_open(const char *directory, const char *session, struct tfan_operator **ret)
{
	struct tfan_operator *control = calloc(1, sizeof(*control));

	*ret = control;
	if (!control)
		return -ENOMEM;
	control->socket = -1;
	failure_init(&control->failure);
	if (control_text(control->name, sizeof(control->name), session ? session : "default") < 0)
		return failure_set(&control->failure, TFAN_USAGE, ENAMETOOLONG, -1, "the session's name is longer than %zu bytes",
			sizeof(control->name) - 1);
	return operator_connect(control, directory ? directory : "/run/tracefan");
}

void tfan_operator_close(struct tfan_operator *control)
{
	if (!control)
		return;
	control->socket = close_fd(control->socket);
	free(control);
}

void tfan_operator_set_patience(struct tfan_operator *control, unsigned int milliseconds)
{
	const struct timeval limit = { .tv_sec = milliseconds / 1000, .tv_usec = (suseconds_t)(milliseconds % 1000) * 1000 };

	control->patience = milliseconds;
	/* Where it can't be set, it is waited for longer. */
	if (control->socket >= 0)
		(void)setsockopt(control->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

/* The answer may still come, and would be taken for that of the next request. */
static int operator_give_up(struct tfan_operator *control)
{
	control->socket = close_fd(control->socket);
	return failure_set(&control->failure, TFAN_BUSY, ETIMEDOUT, -1,
		"the reader of session \"%s\", process %d, gave no answer for %u ms: it hangs or was stopped", control->name,
		(int)control->reader, control->patience);
}

int tfan_operator_reader(const struct tfan_operator *control)
{
	return control->reader;
}

const struct tfan_failure *tfan_operator_failure(const struct tfan_operator *control)
{
	return &control->failure.public;
}

static int operator_call(struct tfan_operator *control, uint16_t type, struct control_message *ret)
{
	struct control_id request = { 0 };
	int r;

	if (control->socket < 0)
		return failure_set(&control->failure, TFAN_FAILED, ENOTCONN, -1, "not connected to a session");
	control_header_init(&request.header, type, sizeof(request), ++control->cookie);
	r = control_call(control->socket, &request, NULL, 0, ret);
	if (r == -EAGAIN && control->patience)
		return operator_give_up(control);
	if (r == -ECONNRESET)
		return failure_set(&control->failure, TFAN_FAILED, ECONNRESET, -1, "session \"%s\" closed the connection",
			control->name);
	if (r < 0)
		return failure_set(&control->failure, TFAN_FAILED, -r, -1, "session \"%s\" gave no answer that makes sense: %s",
			control->name, strerror(-r));
	return 0;
}

/* A request whose answer is a status alone. */
static int operator_ask(struct tfan_operator *control, uint16_t type)
{
	struct control_message reply;
	const struct control_status *status = (const struct control_status *)reply.bytes;
	int r = operator_call(control, type, &reply);

	if (r < 0)
		return r;
	if (status->status != 0)
		r = failure_take(&control->failure, status->status, &status->failure);
	control_message_release(&reply);
	return r;
}

int tfan_operator_flush(struct tfan_operator *control)
{
	return operator_ask(control, CONTROL_SESSION_FLUSH);
}

int tfan_operator_stop(struct tfan_operator *control)
{
	return operator_ask(control, CONTROL_SESSION_STOP);
}

static void operator_status_from(const struct control_session_status *from, struct tfan_operator_status *ret)
{
	*ret = (struct tfan_operator_status){
		.is_text = from->source == SOURCE_TEXT,
		.is_recorded = from->flags & SESSION_RECORDED,
		.is_fallback = from->flags & SESSION_FALLBACK,
		.reader_pid = from->reader_pid,
		.router_pid = from->router_pid,
		.started = from->started,
		.buffer_size = from->buffer_size,
		.subbuf_size = from->subbuf_size,
		.cpus = from->cpu_count,
		.probes = from->probes,
	};
	memcpy(ret->session, from->session, sizeof(ret->session));
	memcpy(ret->instance, from->instance, sizeof(ret->instance));
}

int tfan_operator_status(struct tfan_operator *control, struct tfan_operator_status *ret)
{
	struct control_message reply;
	const struct control_session_status *status = (const struct control_session_status *)reply.bytes;
	int r = operator_call(control, CONTROL_SESSION_STATUS, &reply);

	_Static_assert(sizeof(ret->session) == CONTROL_NAME_MAX, "names fit");
	if (r < 0)
		return r;
	if (status->status != 0)
		r = failure_take(&control->failure, status->status, &status->failure);
	else
		operator_status_from(status, ret);
	control_message_release(&reply);
	return r;
}
