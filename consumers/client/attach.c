#include "consumers/client/attach.h"

#include "base/cleanup.h"
#include "base/time_namespace.h"
#include "consumers/client/connection.h"
#include "consumers/client/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_DIRECTORY "/run/tracefan"
#define DEFAULT_SESSION   "default"
#define DEFAULT_RING      (4U << 20)

/* Who waits longer for the session's first word is told so. */
#define SILENCE_MS 2000

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

/* Which group the session is for, and what makes this user, or anybody, a member of it. */
static int not_admitted(struct tfan *tfan, const char *directory, int error)
{
	const char *name = tfan->session_name;
	struct group group, *found = NULL;
	char number[16], room[4096];
	struct stat st;

	if (tfan->folder < 0 || fstatat(tfan->folder, "consumers.sock", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return failure_set(&tfan->failure, TFAN_NOT_PERMITTED, error, -1,
			"not permitted to attach to session \"%s\" in %s: %s", name, directory, strerror(error));
	if (!(st.st_mode & S_IRWXG))
		return failure_set(&tfan->failure, TFAN_NOT_PERMITTED, error, -1,
			"not permitted to attach to session \"%s\" in %s: it has no group, so only root may; have root make one with "
			"\"groupadd --system tracefan\", or name one with --group or \"group =\", and start the session again",
			name, directory);
	(void)snprintf(number, sizeof(number), "%u", (unsigned int)st.st_gid);
	(void)getgrgid_r(st.st_gid, &group, room, sizeof(room), &found);
	return failure_set(&tfan->failure, TFAN_NOT_PERMITTED, error, -1,
		"not permitted to attach to session \"%s\" in %s: it is for the members of group %s; become one with \"usermod -aG %s "
		"USER\", by root, and log in again", name, directory, found ? found->gr_name : number,
		found ? found->gr_name : number);
}

static int connect_failed(struct tfan *tfan, const char *directory, int error)
{
	const char *name = tfan->session_name;
	bool usual = strcmp(directory, DEFAULT_DIRECTORY) == 0;

	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return failure_set(&tfan->failure, TFAN_MISSING, error, -1,
			"there is no session \"%s\" in %s: start it with \"tracefan session start %s%s%s\"",
			name, directory, name, usual ? "" : " --directory ", usual ? "" : directory);
	case ECONNREFUSED:
		return failure_set(&tfan->failure, TFAN_MISSING, error, -1,
			"session \"%s\" in %s is dead: neither of its daemons runs; start it again with: tracefan session start %s", name,
			directory, name);
	case EACCES:
	case EPERM:
		return not_admitted(tfan, directory, error);
	default:
		return failure_set(&tfan->failure, TFAN_FAILED, error, -1, "can't connect to session \"%s\" in %s: %s",
			name, directory, strerror(error));
	}
}

/* The folder of the session's sockets, by descriptor: a path longer than a socket address holds is no matter,
 * and a later session of the same name is another one. */
static int open_folder(struct tfan *tfan, const char *directory)
{
	CLEANUP_CLOSE int top = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (top < 0)
		return connect_failed(tfan, directory, errno);
	tfan->folder = openat(top, tfan->session_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return tfan->folder < 0 ? connect_failed(tfan, directory, errno) : 0;
}

/* Connects without waiting: the listener's queue holds those whom the router has not accepted yet. */
static int open_socket(const struct tfan *tfan)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int flags;

	if (fd < 0)
		return -errno;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/consumers.sock", tfan->folder);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	/* Every other request waits for its answer. */
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int attach_greet(struct tfan *tfan)
{
	struct control_hello request = { 0 };
	int fd = open_socket(tfan), rc;

	if (fd < 0)
		return fd;
	(void)close_fd(tfan->socket);
	tfan->socket = fd;
	memcpy(request.program, tfan->program, sizeof(request.program));
	control_header_init(&request.header, CONTROL_HELLO, sizeof(request), ++tfan->cookie);
	rc = control_send(tfan->socket, &request, NULL, 0);
	/* Whoever is turned away at the door finds the reason in the socket. */
	return rc == -EPIPE ? 0 : rc;
}

static void take_welcome(struct tfan *tfan, const struct control_welcome *welcome)
{
	memcpy(tfan->session_name, welcome->session, sizeof(tfan->session_name));
	tfan->session.name = tfan->session_name;
	tfan->session.is_text = welcome->source == SOURCE_TEXT;
	tfan->session.is_recorded = welcome->flags & SESSION_RECORDED;
	tfan->session.is_fallback = welcome->flags & SESSION_FALLBACK;
	tfan->readerless = welcome->flags & SESSION_READERLESS;
}

/* A peer that closed without having read the greeting is told of first, and only then what it said. */
static int receive_welcome(const struct tfan *tfan, struct control_message *ret)
{
	bool reset = false;
	int rc;

	for (;;) {
		rc = control_receive(tfan->socket, ret);
		if (rc != -EINTR && (rc != -ECONNRESET || reset))
			return rc;
		reset = reset || rc == -ECONNRESET;
	}
}

int attach_welcomed(struct tfan *tfan, bool wait)
{
	struct pollfd fd = { .fd = tfan->socket, .events = POLLIN };
	struct control_message reply;
	const struct control_welcome *welcome = (const struct control_welcome *)reply.bytes;
	int rc;

	rc = wait ? connection_wait(tfan, SILENCE_MS) : poll(&fd, 1, 0) <= 0 ? -EAGAIN : 0;
	if (rc == -EAGAIN && !wait)
		return rc;
	if (rc == -EAGAIN) {
		/* The reader holds the listener for a router that is still to come, or to come back. */
		connection_note(tfan, TFAN_NOTE_WARNING,
			"session \"%s\" does not answer, going on waiting: does its tracefan-router run?", tfan->session_name);
	}
	if (rc == -EAGAIN)
		rc = connection_wait(tfan, tfan->only_look && tfan->patience ? (int)tfan->patience : -1);
	if (rc < 0)
		return connection_give_up(tfan, rc);
	rc = receive_welcome(tfan, &reply);
	if (rc <= 0)
		return connection_failed(tfan, rc == 0 ? -ECONNRESET : rc);
	rc = control_check(&reply);
	if (rc || reply.header.type != (CONTROL_HELLO | CONTROL_REPLY) ||
		(reply.header.cookie != tfan->cookie && !(reply.header.cookie == 0 && welcome->status != 0)))
		rc = connection_failed(tfan, -EPROTO);
	else if (welcome->status != 0)
		rc = failure_take(&tfan->failure, welcome->status, &welcome->failure);
	else
		take_welcome(tfan, welcome);
	control_message_release(&reply);
	return rc;
}

static int take_ring(struct tfan *tfan, struct control_message *reply)
{
	const struct control_attached *attached = (const struct control_attached *)reply->bytes;
	struct ring_reader ring;
	int rc;

	if (attached->status != 0)
		return failure_take(&tfan->failure, attached->status, &attached->failure);
	if (reply->fd_count != 3)
		return connection_failed(tfan, -EPROTO);
	rc = ring_reader_attach(reply->fds, &ring);
	if (rc)
		return failure_set(&tfan->failure, TFAN_FAILED, -rc, -1, "can't map the ring of session \"%s\": %s",
			tfan->session_name, strerror(-rc));
	for (size_t i = 0; i < 3; i++)
		reply->fds[i] = -1;
	if (tfan->attached)
		ring_reader_release(&tfan->ring);
	tfan->ring = ring;
	tfan->overwritten = 0;
	tfan->comeback.some_closed = false;
	tfan->attached = true;
	tfan->session.ring_size = tfan->ring.capacity;
	return attach_watch(tfan, tfan->ring.wake_fd);
}

int attach_ring(struct tfan *tfan, uint32_t flags, uint64_t seen_time, uint32_t seen_cpu)
{
	struct control_attach request = tfan->attach;
	struct control_message reply;
	int rc;

	request.flags |= flags;
	request.seen_time = seen_time;
	request.seen_cpu = seen_cpu;
	rc = connection_call(tfan, CONTROL_ATTACH, &request, sizeof(request), -1, &reply);
	if (rc)
		return rc;
	rc = take_ring(tfan, &reply);
	control_message_release(&reply);
	return rc;
}

int attach_watch(struct tfan *tfan, int fd)
{
	struct epoll_event on = { .events = EPOLLIN };

	if (epoll_ctl(tfan->epoll, EPOLL_CTL_ADD, fd, &on) < 0)
		return failure_set(&tfan->failure, TFAN_FAILED, errno, -1, "epoll: %s", strerror(errno));
	return 0;
}

/* One descriptor that is readable when there is a record, when the interval is over, or when the router closed. */
static int open_epoll(struct tfan *tfan)
{
	tfan->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (tfan->epoll < 0)
		return failure_set(&tfan->failure, TFAN_FAILED, errno, -1, "epoll: %s", strerror(errno));
	if (tfan->interval == 0)
		return 0;
	tfan->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (tfan->timer < 0)
		return failure_set(&tfan->failure, TFAN_FAILED, errno, -1, "timerfd: %s", strerror(errno));
	return attach_watch(tfan, tfan->timer);
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

/* What is kept of the options, checked. */
static int take_options(struct tfan *tfan, const struct tfan_options *options)
{
	const char *name = options->session ? options->session : DEFAULT_SESSION;
	const char *program = options->program ? options->program : program_invocation_short_name;

	tfan->logger = options->logger;
	tfan->logger_context = options->logger_context;
	tfan->all_events = options->all_events;
	tfan->force = options->force;
	tfan->interval = options->interval;
	tfan->no_return = options->no_return;
	tfan->patience = options->patience;
	tfan->only_look = options->only_look;
	tfan->clock_ahead = (uint64_t)time_namespace_ahead();
	tfan->wait = options->wait;
	tfan->wait_context = options->wait_context;
	(void)snprintf(tfan->program, sizeof(tfan->program), "%s", program);
	tfan->attach.ring_capacity = options->ring_size ? options->ring_size : DEFAULT_RING;
	tfan->attach.overflow = options->overflow == TFAN_OVERWRITE ? RING_OVERWRITE : RING_DROP;
	tfan->attach.flags = (options->all_events ? ATTACH_ALL_EVENTS : 0U) |
		(options->include_self ? ATTACH_INCLUDE_SELF : 0U) | (options->await_state ? ATTACH_HOLD : 0U) |
		(options->processes ? ATTACH_PROCESS : 0U);
	tfan->processes = options->processes;
	if (!session_name_valid(name))
		return failure_set(&tfan->failure, TFAN_USAGE, EINVAL, -1,
			"\"%.64s\" is no name of a session: letters, digits, '_' and '-', at most %d, a letter first",
			name, CONTROL_SESSION_MAX);
	if (options->ring_size > RING_CAPACITY_MAX)
		return failure_set(&tfan->failure, TFAN_USAGE, EINVAL, -1,
			"a ring of %zu bytes is too large: at most %u", options->ring_size, RING_CAPACITY_MAX);
	memcpy(tfan->session_name, name, strlen(name) + 1);
	tfan->session.name = tfan->session_name;
	return 0;
}

static int open_session(struct tfan *tfan, const struct tfan_options *from)
{
	struct tfan_options options;
	const char *directory;
	int rc = read_options(tfan, from, &options);

	if (rc == 0)
		rc = take_options(tfan, &options);
	if (rc)
		return rc;
	directory = options.directory ? options.directory : DEFAULT_DIRECTORY;
	rc = open_folder(tfan, directory);
	if (rc)
		return rc;
	rc = attach_greet(tfan);
	if (rc)
		return connect_failed(tfan, directory, -rc);
	rc = attach_welcomed(tfan, true);
	if (rc == 0 && tfan->only_look)
		return 0;
	if (rc == 0)
		connection_note_reader(tfan);
	if (rc == 0)
		rc = open_epoll(tfan);
	if (rc == 0)
		rc = attach_ring(tfan, 0, 0, 0);
	return rc ? rc : attach_watch(tfan, tfan->socket);
}

int tfan_open(const struct tfan_options *options, struct tfan **ret)
{
	struct tfan *tfan = calloc(1, sizeof(*tfan));
	int rc;

	*ret = tfan;
	if (!tfan)
		return -ENOMEM;
	tfan->socket = -1;
	tfan->folder = -1;
	tfan->epoll = -1;
	tfan->timer = -1;
	tfan->event.tfan = tfan;
	failure_init(&tfan->failure);
	rc = open_session(tfan, options);
	if (rc == 0 && tfan->only_look) {
		tfan->broken = -ENOTCONN;
		tfan->pending = true;
	}
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
	if (tfan->attached && tfan->socket >= 0 && tfan->comeback.state == COMEBACK_NONE) {
		control_header_init(&request.header, CONTROL_DETACH, sizeof(request), ++tfan->cookie);
		(void)control_send(tfan->socket, &request, NULL, 0);
	}
	capture_release(&tfan->capture);
	if (tfan->attached)
		ring_reader_release(&tfan->ring);
	trace_bury(tfan);
	for (size_t i = 0; i < tfan->trace_count; i++)
		trace_free(tfan->traces[i]);
	free(tfan->traces);
	free(tfan->closed);
	trace_index_release(&tfan->index);
	free(tfan->list);
	consumer_list_free(tfan->consumers);
	free(tfan->explained);
	free(tfan->strings.bytes);
	stack_release(tfan);
	tfan->epoll = close_fd(tfan->epoll);
	tfan->timer = close_fd(tfan->timer);
	tfan->socket = close_fd(tfan->socket);
	tfan->folder = close_fd(tfan->folder);
	free(tfan);
}
