#include "reader/successor.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "reader/reader_start.h"
#include "shm/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/* How long the router may take to let somebody in, to notice that its reader is dead, and to answer. */
#define ANSWER_SECONDS 20

bool successor_possible(const struct reader *reader)
{
	const struct reader_options *options = reader->options;

	return options->owner_fd < 0 &&
	       (options->source == OPTIONS_RAW || options->source == OPTIONS_TEXT);
}

/* Returns the connection, -ENOENT (nobody listens) or another -errno. */
static int connect_router(const struct session_dir *dir)
{
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int n;

	if (fd < 0)
		return -errno;
	n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/consumers.sock", dir->path);
	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	/* For the answer, and for the connection where many wait for one already. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return errno == ECONNREFUSED ? -ENOENT : -errno;
	return TAKE_FD(fd);
}

/* The number that the router says is its own is kept out of the trace: it has to be a process of the router's user. */
static bool is_routers(pid_t pid, uid_t uid)
{
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return pid > 0 && stat(path, &st) == 0 && st.st_uid == uid;
}

static int ask(struct reader *reader, int fd)
{
	struct control_id request = { .id = 0 };
	struct control_message reply;
	const struct control_heir *heir = (const void *)reply.bytes;
	int r;

	control_header_init(&request.header, CONTROL_READER, sizeof(request), 1);
	r = control_call(fd, &request, NULL, 0, &reply);
	if (r < 0)
		return r;
	if (heir->status || !is_routers(heir->router_pid, reader->router_uid)) {
		log_warning("the router refuses: %s",
			heir->status ? heir->failure.message : "it says that it is somebody else's process");
		r = -EPERM;
	} else {
		reader->inherited_pid = heir->router_pid;
		reader->missing = heir->consumers;
		reader->inherited_counters = (struct pool_counters){
			.decoded = heir->decoded,
			.undecodable = heir->undecodable,
			.told_lost = heir->told_lost,
			.lost_reader = heir->lost_reader,
		};
		reader->dir.consumers = TAKE_FD(reply.fds[0]);
	}
	control_message_release(&reply);
	return r;
}

/* Until the router has closed. 0 or -errno; -EAGAIN: it takes too long. */
static int await_end(int fd)
{
	char byte;
	ssize_t n;

	do
		n = recv(fd, &byte, 1, 0);
	while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 && errno != ECONNRESET ? -errno : 0;
}

int successor_end_router(const struct session_dir *dir)
{
	CLEANUP_CLOSE int fd = connect_router(dir);
	struct control_id request = { .id = 0 };
	struct control_message reply;
	const struct control_status *status = (const void *)reply.bytes;
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	control_header_init(&request.header, CONTROL_READER_END, sizeof(request), 1);
	r = control_call(fd, &request, NULL, 0, &reply);
	/* It went while it was asked. */
	if (r < 0)
		return r == -ECONNRESET ? 0 : r;
	r = status->status ? -EPERM : 0;
	control_message_release(&reply);
	return r < 0 ? r : await_end(fd);
}

static bool listens(int fd)
{
	int value = 0;
	socklen_t size = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) == 0 && value;
}

int successor_greet(struct reader *reader)
{
	CLEANUP_CLOSE int fd = connect_router(&reader->dir);
	int r = fd < 0 ? fd : ask(reader, fd);

	/* It went while it was asked. */
	if (r == -ENOENT || r == -ECONNRESET || r == -EPIPE)
		return 0;
	if (!r && !listens(reader->dir.consumers))
		r = -EPROTO;
	if (!r && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r < 0) {
		log_error("session \"%s\" has a router whose reader died, and it can't be taken over: %s; end "
			  "that router first",
			reader->options->session, strerror(-r));
		reader->status = EXIT_BUSY;
		return r;
	}
	reader->inherited = TAKE_FD(fd);
	return 1;
}

static int adopt_probes(struct reader *reader, const struct legacy_session *session)
{
	int r = live_adopt(&reader->live, &reader->instance, reader->options->session,
		session->source == SOURCE_TEXT, reader->helper.process, &reader->legacy, session->tag);

	if (r < 0)
		return reader_fail(reader, EXIT_FAILED, r, "taking over of the probes");
	reader->provider = &reader->live.provider;
	reader->provider->source = session->source;
	reader->flags |= session->flags & SESSION_FALLBACK;
	/* Until the router has said which are still wanted. */
	reader->grace = loop_now() + PROVIDER_GRACE;
	log_note("took over session \"%s\" with %u probes from a reader that died",
		reader->options->session, reader->live.probes.count);
	return 0;
}

int successor_adopt(struct reader *reader, int root)
{
	const uint32_t source =
		reader->options->source == OPTIONS_TEXT ? SOURCE_TEXT : SOURCE_RAW;
	struct tracedir_problem problem;
	struct legacy_session session;
	int r = legacy_take(reader->dir.dir, &session, &reader->legacy);

	if (r < 0)
		return reader_fail(reader, EXIT_BUSY, r,
			"what the session's last reader kept (end the session's router first)");
	if (session.source != source) {
		log_error("the session's events are read as %s: take over with --source %s",
			session.source == SOURCE_TEXT ? "text" : "raw pages",
			session.source == SOURCE_TEXT ? "text" : "raw");
		reader->status = EXIT_USAGE;
		return -EINVAL;
	}
	r = instance_adopt(root, reader->options->session, &reader->instance, &problem);
	if (r < 0) {
		log_error("%s", problem.message);
		reader->status = problem.status;
		return r;
	}
	reader->has_instance = true;
	return adopt_probes(reader, &session);
}
