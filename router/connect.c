#include "router/connect.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "base/process.h"
#include "base/time_namespace.h"
#include "router/confine.h"
#include "router/own_events.h"
#include "router/router.h"
#include "shm/recording_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { FD_POOL, FD_FREE, FD_FILLED, FD_FREED, FD_LISTEN, FD_FACTS, FD_NAMES, FD_COUNT };

#define BLOB_MAX (64U << 20)

static int open_socket(struct router *router)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP_CLOSE int fd = -1;
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s/router.sock", router->options.directory, router->options.session);

	if (n < 0 || (size_t)n >= sizeof(address.sun_path)) {
		log_error("the path %s/%s/router.sock is too long for a socket: choose a shorter --directory",
			router->options.directory, router->options.session);
		return EXIT_USAGE;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		bool usual = strcmp(router->options.directory, ROUTER_DIRECTORY_USUAL) == 0;

		log_error("session %s: %s: %s (start tracefan-reader --session %s%s%s first)", router->options.session,
			address.sun_path, strerror(errno), router->options.session, usual ? "" : " --directory ",
			usual ? "" : router->options.directory);
		return errno == EACCES ? EXIT_NOT_PERMITTED : EXIT_MISSING;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return EXIT_FAILED;
	router->takeover.reader_uid = peer.uid;
	router->upstream.fd = TAKE_FD(fd);
	return EXIT_DONE;
}

/* Everything that comes after runs without a privilege. */
static int drop_privileges(struct router *router)
{
	int r = process_notify_open(&router->notify_fd);

	/* Whoever waits for the word would wait for ever. */
	if (r < 0) {
		log_error("NOTIFY_SOCKET: %s", strerror(-r));
		return EXIT_FAILED;
	}
	r = confine_router(router->options.uid, router->options.gid, router->options.confinement);
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

static int take_names(struct router *router, int fd)
{
	CLEANUP_FREE void *blob = NULL;
	const struct control_task_name *names;
	size_t size = 0;
	int r = segment_blob_read(fd, BLOB_MAX, &blob, &size);

	if (r < 0)
		return r;
	names = blob;
	for (size_t i = 0; r == 0 && i < size / sizeof(*names); i++)
		r = tasks_set(&router->fanout.tasks, names[i].tid, names[i].comm, sizeof(names[i].comm), true);
	return r;
}

static int add_format_fact(struct router *router, const char *bytes, size_t size)
{
	const char *end = bytes + size;
	const char *shown = memchr(bytes, '\0', size);
	const char *format = shown ? memchr(shown + 1, '\0', (size_t)(end - shown - 1)) : NULL;
	struct catalog_event *event = NULL;
	struct route *route = NULL;
	const char *reason = NULL;
	int r;

	if (!format)
		return -EBADMSG;
	shown++;
	format++;
	r = catalog_add(router->catalog, bytes, format, (size_t)(end - format), &event, &reason);
	if (r == -EBADMSG) {
		log_warning("a format file of system %s is left out: %s", bytes, reason);
		return 0;
	}
	if (r == 0)
		r = fanout_route(&router->fanout, event, &route);
	if (r == 0 && !*shown && !route->shown)
		route->hidden = true;
	if (r == 0 && *shown && !route->shown) {
		route->hidden = false;
		route->shown = strdup(shown);
		r = route->shown ? 0 : -ENOMEM;
	}
	return r;
}

/* The traced kernel's layout first, then what needs it. */
static int take_facts(struct router *router, const void *blob, size_t size)
{
	struct control_fact_header fact;
	const char *bytes;
	size_t at = 0;
	bool big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	unsigned int long_size = 8;
	int r;

	while ((r = ledger_fact_next(blob, size, &at, &fact, &bytes)) == 1) {
		if (fact.fact == FACT_MACHINE && fact.size >= 1)
			big_endian = bytes[0] != 0;
	}
	for (at = 0; r == 0 && (r = ledger_fact_next(blob, size, &at, &fact, &bytes)) == 1; r = 0) {
		if (fact.fact != FACT_HEADER_PAGE)
			continue;
		r = page_layout_parse(bytes, fact.size, big_endian, &router->layout);
		long_size = router->layout.commit_size;
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	r = catalog_create(big_endian, long_size, &router->catalog);
	if (r == 0)
		r = fanout_init(&router->fanout, router->catalog, router_text(router), big_endian);
	router->fanout.unseen = consumer_unseen;
	router->fanout.unseen_context = router;
	for (at = 0; r == 0 && (r = ledger_fact_next(blob, size, &at, &fact, &bytes)) == 1;) {
		r = 0;
		if (fact.fact == FACT_PRINTK_FORMATS)
			r = catalog_add_printk_formats(router->catalog, bytes, fact.size);
		else if (fact.fact == FACT_STACK_FORMAT)
			r = stacks_learn(&router->fanout.stacks, router->catalog, bytes, fact.size, long_size);
		else if (fact.fact == FACT_FORMAT)
			r = add_format_fact(router, bytes, fact.size);
	}
	return r;
}

static int prepare(struct router *router, int fds[FD_COUNT])
{
	CLEANUP_FREE void *facts = NULL;
	size_t size = 0;
	int r = segment_blob_read(fds[FD_FACTS], BLOB_MAX, &facts, &size);

	if (r == 0)
		r = pool_reader_attach(&fds[FD_POOL], &router->pool);
	if (r < 0)
		return r;
	for (int i = FD_POOL; i <= FD_FREED; i++)
		fds[i] = -1;
	router->listen_fd = TAKE_FD(fds[FD_LISTEN]);
	if (fcntl(router->listen_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	recorder_init(&router->recorder, router->options.record_fd);
	recorder_begin(&router->recorder, &router->welcome, router->pool.slot_size);
	recorder_blob(&router->recorder, FRAME_FACTS, facts, size);
	r = take_facts(router, facts, size);
	if (r == 0)
		r = stream_init(router);
	if (r == 0 && !router_text(router))
		r = take_names(router, fds[FD_NAMES]);
	return r;
}

static int preparing_failed(int error)
{
	log_error("preparing the session: %s", strerror(-error));
	return EXIT_FAILED;
}

static int greet(struct router *router, bool own_clock)
{
	struct control_router_hello hello;
	struct control_message reply;
	int r;

	control_header_init(&hello.header, CONTROL_ROUTER, sizeof(hello), ++router->upstream.next_cookie);
	r = control_call(router->upstream.fd, &hello, NULL, 0, &reply);
	if (r == -ECONNRESET) {
		log_error("session %s: the reader closed the connection: another tracefan-router serves the session already",
			router->options.session);
		return EXIT_BUSY;
	}
	if (r < 0) {
		log_error("greeting the reader: %s", strerror(-r));
		return EXIT_FAILED;
	}
	memcpy(&router->welcome, reply.bytes, sizeof(router->welcome));
	if (router->welcome.status) {
		log_error("the reader refuses: %s", router->welcome.failure.message);
		control_message_release(&reply);
		return (int)router->welcome.status;
	}
	if (own_clock && !router_recorded(router)) {
		log_error("the monotonic clock of this time namespace is not the session's; start the router outside: nsenter --time --target 1");
		control_message_release(&reply);
		return EXIT_MISSING;
	}
	router->awaited = router->welcome.consumers;
	router->upstream.lasting = router->welcome.flags & SESSION_LASTING;
	r = reply.fd_count == FD_COUNT ? prepare(router, reply.fds) : -EBADMSG;
	control_message_release(&reply);
	return r < 0 ? preparing_failed(r) : EXIT_DONE;
}

int connect_reader(struct router *router)
{
	const bool own_clock = time_namespace_ahead() != 0;
	int r, status = open_socket(router);

	if (status == EXIT_DONE)
		status = drop_privileges(router);
	if (status == EXIT_DONE)
		status = greet(router, own_clock);
	if (status != EXIT_DONE)
		return status;
	r = own_events_start(router);
	/* As of after these were switched on, so that there is no gap between. */
	if (r == 0)
		r = state_start(router);
	if (r == 0 && fcntl(router->upstream.fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	return r < 0 ? preparing_failed(r) : EXIT_DONE;
}
