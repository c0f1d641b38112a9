#include "consumers/client/connection.h"

#include "base/checked.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_DIRECTORY "/run/tracefan"
#define DEFAULT_SESSION   "default"
#define DEFAULT_RING      (4U << 20)
#define LIST_MAX          (16U << 20)

void connection_note(struct tfan *tfan, enum tfan_level level, const char *format, ...)
{
	char text[1024];
	va_list ap;

	if (!tfan->logger)
		return;
	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	tfan->logger(tfan->logger_context, (int)level, text);
}

/* ---- requests ---- */

static int call_failed(struct tfan *tfan, int rc)
{
	switch (rc) {
	case -ECONNRESET:
	case -EPIPE:
		return failure_set(&tfan->failure, TFAN_FAILED, ECONNRESET, -1,
			"session \"%s\" closed the connection: its router ended or was restarted", tfan->session_name);
	case -EBADMSG:
	case -EMSGSIZE:
	case -EPROTO:
		return failure_set(&tfan->failure, TFAN_FAILED, -rc, -1,
			"session \"%s\" gave an answer that makes no sense: is its router of another version?",
			tfan->session_name);
	default:
		return failure_set(&tfan->failure, TFAN_FAILED, -rc, -1, "can't talk to session \"%s\": %s",
			tfan->session_name, strerror(-rc));
	}
}

int connection_call(struct tfan *tfan, uint16_t type, void *request, uint32_t size, int fd,
	struct control_message *ret)
{
	int rc;

	if (tfan->socket < 0)
		return failure_set(&tfan->failure, TFAN_FAILED, ENOTCONN, -1, "not connected to a session");
	control_header_init(request, type, size, ++tfan->cookie);
	rc = control_call(tfan->socket, request, &fd, fd >= 0 ? 1 : 0, ret);
	return rc < 0 ? call_failed(tfan, rc) : 0;
}

int connection_ask(struct tfan *tfan, uint16_t type, void *request, uint32_t size, int *ret_fd)
{
	struct control_message reply;
	const struct control_status *status = (const struct control_status *)reply.bytes;
	int rc = connection_call(tfan, type, request, size, -1, &reply);

	if (rc)
		return rc;
	if (status->status != 0)
		rc = failure_take(&tfan->failure, status->status, &status->failure);
	else if (ret_fd && reply.fd_count != 1)
		rc = call_failed(tfan, -EPROTO);
	else if (ret_fd)
		*ret_fd = TAKE_FD(reply.fds[0]);
	control_message_release(&reply);
	return rc;
}

/* ---- opening ---- */

static bool session_name_valid(const char *name)
{
	size_t i = 0;

	if (!(name[0] >= 'a' && name[0] <= 'z') && !(name[0] >= 'A' && name[0] <= 'Z'))
		return false;
	for (; name[i]; i++)
		if (!(name[i] >= 'a' && name[i] <= 'z') && !(name[i] >= 'A' && name[i] <= 'Z') &&
			!(name[i] >= '0' && name[i] <= '9') && name[i] != '_' && name[i] != '-')
			return false;
	return i <= CONTROL_SESSION_MAX;
}

static int connect_failed(struct tfan *tfan, const char *directory, int error)
{
	const char *name = tfan->session_name;

	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return failure_set(&tfan->failure, TFAN_MISSING, error, -1,
			"there is no session \"%s\" in %s: start it with \"tracefan session start %s\"", name,
			directory, name);
	case ECONNREFUSED:
		return failure_set(&tfan->failure, TFAN_MISSING, error, -1,
			"session \"%s\" in %s is not running: its socket is there, but nobody answers", name,
			directory);
	case EACCES:
	case EPERM:
		return failure_set(&tfan->failure, TFAN_NOT_PERMITTED, error, -1,
			"not permitted to attach to session \"%s\": its socket in %s/%s is for its group; "
			"become a member of it", name, directory, name);
	default:
		return failure_set(&tfan->failure, TFAN_FAILED, error, -1, "can't connect to session \"%s\" in %s: %s",
			name, directory, strerror(error));
	}
}

/* Connects by the directory's descriptor, so that a path longer than a socket address holds is no matter. */
static int open_socket(struct tfan *tfan, const char *directory)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP_CLOSE int top = -1, folder = -1, fd = -1;

	top = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return connect_failed(tfan, directory, errno);
	folder = openat(top, tfan->session_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return connect_failed(tfan, directory, errno);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return connect_failed(tfan, directory, errno);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/consumers.sock", folder);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return connect_failed(tfan, directory, errno);
	tfan->socket = TAKE_FD(fd);
	return 0;
}

static int hello(struct tfan *tfan, const char *program)
{
	struct control_hello request = { 0 };
	struct control_message reply;
	const struct control_welcome *welcome = (const struct control_welcome *)reply.bytes;
	int rc;

	(void)snprintf(request.program, sizeof(request.program), "%s", program);
	rc = connection_call(tfan, CONTROL_HELLO, &request, sizeof(request), -1, &reply);
	if (rc)
		return rc;
	if (welcome->status != 0) {
		rc = failure_take(&tfan->failure, welcome->status, &welcome->failure);
	} else {
		memcpy(tfan->session_name, welcome->session, sizeof(tfan->session_name));
		tfan->session.name = tfan->session_name;
		tfan->session.is_text = welcome->source == SOURCE_TEXT;
		tfan->session.is_recorded = welcome->flags & SESSION_RECORDED;
		tfan->session.is_fallback = welcome->flags & SESSION_FALLBACK;
	}
	control_message_release(&reply);
	return rc;
}

static int take_ring(struct tfan *tfan, struct control_message *reply)
{
	const struct control_attached *attached = (const struct control_attached *)reply->bytes;
	int rc;

	if (attached->status != 0)
		return failure_take(&tfan->failure, attached->status, &attached->failure);
	if (reply->fd_count != 3)
		return call_failed(tfan, -EPROTO);
	rc = ring_reader_attach(reply->fds, &tfan->ring);
	if (rc)
		return failure_set(&tfan->failure, TFAN_FAILED, -rc, -1, "can't map the ring of session \"%s\": %s",
			tfan->session_name, strerror(-rc));
	for (size_t i = 0; i < 3; i++)
		reply->fds[i] = -1;
	tfan->attached = true;
	tfan->session.ring_size = tfan->ring.capacity;
	return 0;
}

static int attach(struct tfan *tfan, const struct tfan_options *options)
{
	struct control_attach request = {
		.ring_capacity = options->ring_size ? options->ring_size : DEFAULT_RING,
		.overflow = options->overflow == TFAN_OVERWRITE ? RING_OVERWRITE : RING_DROP,
		.flags = (options->all_events ? ATTACH_ALL_EVENTS : 0U) |
			(options->include_self ? ATTACH_INCLUDE_SELF : 0U),
	};
	struct control_message reply;
	int rc;

	if (request.ring_capacity > RING_CAPACITY_MAX)
		return failure_set(&tfan->failure, TFAN_USAGE, EINVAL, -1,
			"a ring of %zu bytes is too large: at most %u", options->ring_size, RING_CAPACITY_MAX);
	rc = connection_call(tfan, CONTROL_ATTACH, &request, sizeof(request), -1, &reply);
	if (rc)
		return rc;
	rc = take_ring(tfan, &reply);
	control_message_release(&reply);
	return rc;
}

/* One descriptor that is readable when there is a record, when the interval is over, or when the router closed. */
static int open_epoll(struct tfan *tfan)
{
	const int fds[] = { tfan->ring.wake_fd, tfan->socket, tfan->timer };

	tfan->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (tfan->epoll < 0)
		return failure_set(&tfan->failure, TFAN_FAILED, errno, -1, "epoll: %s", strerror(errno));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		struct epoll_event on = { .events = EPOLLIN };

		if (fds[i] >= 0 && epoll_ctl(tfan->epoll, EPOLL_CTL_ADD, fds[i], &on) < 0)
			return failure_set(&tfan->failure, TFAN_FAILED, errno, -1, "epoll: %s", strerror(errno));
	}
	return 0;
}

static int open_timer(struct tfan *tfan)
{
	if (tfan->interval == 0)
		return 0;
	tfan->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (tfan->timer < 0)
		return failure_set(&tfan->failure, TFAN_FAILED, errno, -1, "timerfd: %s", strerror(errno));
	return 0;
}

/* The caller's structure may be of an older or a newer library's size: what it lacks is zero, and what we
 * don't know has to be. */
static int read_options(struct tfan *tfan, const struct tfan_options *from, struct tfan_options *ret)
{
	const uint8_t *bytes = (const uint8_t *)from;
	struct tfan_options options = TFAN_OPTIONS;

	if (from) {
		if (from->size < sizeof(from->size))
			return failure_set(&tfan->failure, TFAN_USAGE, EINVAL, -1,
				"begin struct tfan_options with TFAN_OPTIONS");
		for (size_t i = sizeof(options); i < from->size; i++)
			if (bytes[i])
				return failure_set(&tfan->failure, TFAN_USAGE, E2BIG, -1,
					"an option that this version of libtracefan does not know");
		memcpy(&options, from, from->size < sizeof(options) ? from->size : sizeof(options));
	}
	*ret = options;
	return 0;
}

static int open_session(struct tfan *tfan, const struct tfan_options *from)
{
	struct tfan_options options;
	const char *name, *directory;
	int rc = read_options(tfan, from, &options);

	if (rc)
		return rc;
	tfan->logger = options.logger;
	tfan->logger_context = options.logger_context;
	tfan->all_events = options.all_events;
	tfan->force = options.force;
	tfan->interval = options.interval;
	name = options.session ? options.session : DEFAULT_SESSION;
	directory = options.directory ? options.directory : DEFAULT_DIRECTORY;
	if (!session_name_valid(name))
		return failure_set(&tfan->failure, TFAN_USAGE, EINVAL, -1,
			"\"%.64s\" is no name of a session: letters, digits, '_' and '-', at most %d, a letter first",
			name, CONTROL_SESSION_MAX);
	memcpy(tfan->session_name, name, strlen(name) + 1);
	tfan->session.name = tfan->session_name;
	rc = open_socket(tfan, directory);
	if (rc == 0)
		rc = hello(tfan, options.program ? options.program : program_invocation_short_name);
	if (rc == 0)
		rc = attach(tfan, &options);
	if (rc == 0)
		rc = open_timer(tfan);
	if (rc == 0)
		rc = open_epoll(tfan);
	return rc;
}

int tfan_open(const struct tfan_options *options, struct tfan **ret)
{
	struct tfan *tfan = calloc(1, sizeof(*tfan));
	int rc;

	*ret = tfan;
	if (!tfan)
		return -ENOMEM;
	tfan->socket = -1;
	tfan->epoll = -1;
	tfan->timer = -1;
	tfan->event.tfan = tfan;
	failure_init(&tfan->failure);
	rc = open_session(tfan, options);
	if (rc) {
		/* What is not whole can only be asked why. */
		tfan->broken = rc;
		tfan->pending = true;
		tfan->socket = close_fd(tfan->socket);
	}
	return rc;
}

void tfan_close(struct tfan *tfan)
{
	struct control_id request = { 0 };

	if (!tfan)
		return;
	/* Nobody waits for the answer: the router lets go of everything when the socket closes. */
	if (tfan->attached && tfan->socket >= 0) {
		control_header_init(&request.header, CONTROL_DETACH, sizeof(request), ++tfan->cookie);
		(void)control_send(tfan->socket, &request, NULL, 0);
	}
	if (tfan->attached)
		ring_reader_release(&tfan->ring);
	trace_bury(tfan);
	for (size_t i = 0; i < tfan->trace_count; i++)
		trace_free(tfan->traces[i]);
	free(tfan->traces);
	free(tfan->closed);
	trace_index_release(&tfan->index);
	free(tfan->list);
	free(tfan->explained);
	free(tfan->strings.bytes);
	tfan->epoll = close_fd(tfan->epoll);
	tfan->timer = close_fd(tfan->timer);
	tfan->socket = close_fd(tfan->socket);
	free(tfan);
}

/* ---- asking ---- */

const struct tfan_failure *tfan_failure(const struct tfan *tfan)
{
	return &tfan->failure.public;
}

const struct tfan_session *tfan_session(const struct tfan *tfan)
{
	return &tfan->session;
}

static void ledger_from(const struct ledger_session *from, struct tfan_session_ledger *ret)
{
	ret->committed = from->committed;
	ret->decoded = from->decoded;
	ret->undecodable = from->undecodable;
	ret->lost_kernel = from->lost_kernel;
	ret->dropped = from->dropped;
}

int tfan_session_ledger(struct tfan *tfan, struct tfan_session_ledger *ret)
{
	struct control_id request = { 0 };
	struct control_message reply;
	const struct control_ledger *ledger = (const struct control_ledger *)reply.bytes;
	int rc;

	if (tfan->has_end_ledger) {
		ledger_from(&tfan->end_ledger, ret);
		return 0;
	}
	rc = connection_call(tfan, CONTROL_LEDGER, &request, sizeof(request), -1, &reply);
	if (rc)
		return rc;
	if (ledger->status != 0)
		rc = failure_take(&tfan->failure, ledger->status, &ledger->failure);
	else
		ledger_from(&ledger->session, ret);
	control_message_release(&reply);
	return rc;
}

int tfan_flush(struct tfan *tfan)
{
	struct control_id request = { 0 };

	return connection_ask(tfan, CONTROL_FLUSH, &request, sizeof(request), NULL);
}

int tfan_list(struct tfan *tfan, const char **ret)
{
	struct control_id request = { 0 };
	CLEANUP_CLOSE int fd = -1;
	void *text = NULL;
	size_t size;
	int rc = connection_ask(tfan, CONTROL_LIST, &request, sizeof(request), &fd);

	if (rc)
		return rc;
	rc = segment_blob_read(fd, LIST_MAX, &text, &size);
	if (rc)
		return call_failed(tfan, rc);
	free(tfan->list);
	tfan->list = text;
	*ret = tfan->list;
	return 0;
}
