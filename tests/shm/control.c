#include "shm/control.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "shm/ring_abi.h"
#include "tests/support/packet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>

/* ---- the table: what control_abi.h's comments promise, written down a second time ---- */

struct text {
	size_t offset, size;
};

struct value {
	size_t offset;
	uint32_t low, high; /* the least and the greatest that are allowed */
};

struct expected {
	const char *name;
	uint16_t type;
	size_t size;
	unsigned int fds_min, fds_max;
	struct text texts[8];
	struct value values[6];
};

#define TEXT(type, member) { offsetof(struct type, member), sizeof(((struct type *)NULL)->member) }
#define FAILURE(type)      TEXT(type, failure.message)
#define AT(type, member)   offsetof(struct type, member)
#define STATUS(type)       { AT(type, status), 0, EXIT_LOST }
#define REPLY(type)        "reply to " #type, (type) | CONTROL_REPLY
#define REQUEST(type)      #type, type

#define ID_REQUEST(type)    { REQUEST(type), 24, 0, 0, { { 0 } }, { { 0 } } }
#define STATUS_REPLY(type, fds)                                                                    \
	{ REPLY(type), 536, fds, fds, { FAILURE(control_status) },                                 \
		{ STATUS(control_status), { AT(control_status, reserved), 0, 0 } } }
#define CREATE(type, fds)                                                                          \
	{ REQUEST(type), 7696, 0, fds,                                                             \
		{ TEXT(control_create, name), TEXT(control_create, system), TEXT(control_create, event), \
			TEXT(control_create, symbol), TEXT(control_create, path), TEXT(control_create, filter) }, \
		{ { AT(control_create, kind), 1, 7 }, { AT(control_create, flags), 0, 7 } } }
#define SET_FILTER(type)                                                                           \
	{ REQUEST(type), 4120, 0, 0, { TEXT(control_set_filter, filter) }, { { 0 } } }
#define SET_ENABLED(type)                                                                          \
	{ REQUEST(type), 32, 0, 0, { { 0 } },                                                      \
		{ { AT(control_set_enabled, enabled), 0, 1 }, { AT(control_set_enabled, reserved), 0, 0 } } }
#define ROUTER_WELCOME(name, type)                                                                      \
	{ name, type, 744, 7, 7,                                                                   \
		{ FAILURE(control_router_welcome), TEXT(control_router_welcome, session),          \
			TEXT(control_router_welcome, group), TEXT(control_router_welcome, tag) },  \
		{ { AT(control_router_welcome, source), 1, 2 }, { AT(control_router_welcome, flags), 0, 15 }, \
			{ AT(control_router_welcome, reserved), 0, 0 } } }

static const struct expected table[] = {
	{ REQUEST(CONTROL_HELLO), 80, 0, 0, { TEXT(control_hello, program) }, { { 0 } } },
	{ REPLY(CONTROL_HELLO), 608, 0, 0, { FAILURE(control_welcome), TEXT(control_welcome, session) },
		{ STATUS(control_welcome), { AT(control_welcome, source), 1, 2 }, { AT(control_welcome, flags), 0, 31 },
			{ AT(control_welcome, reserved), 0, 0 } } },
	{ REQUEST(CONTROL_ATTACH), 64, 0, 0, { { 0 } },
		{ { AT(control_attach, overflow), 0, 1 }, { AT(control_attach, flags), 0, 31 }, { AT(control_attach, reserved0), 0, 0 },
			{ AT(control_attach, reserved), 0, 0 }, { AT(control_attach, reserved) + 12, 0, 0 } } },
	{ REPLY(CONTROL_ATTACH), 544, 3, 3, { FAILURE(control_attached) },
		{ STATUS(control_attached), { AT(control_attached, reserved), 0, 0 } } },
	CREATE(CONTROL_CREATE, 1),
	{ REPLY(CONTROL_CREATE), 544, 0, 0, { FAILURE(control_created) },
		{ STATUS(control_created), { AT(control_created, reserved), 0, 0 } } },
	ID_REQUEST(CONTROL_SCHEMA), STATUS_REPLY(CONTROL_SCHEMA, 1),
	SET_FILTER(CONTROL_SET_FILTER), STATUS_REPLY(CONTROL_SET_FILTER, 0),
	SET_FILTER(CONTROL_SET_SHARED), STATUS_REPLY(CONTROL_SET_SHARED, 0),
	SET_ENABLED(CONTROL_SET_ENABLED), STATUS_REPLY(CONTROL_SET_ENABLED, 0),
	ID_REQUEST(CONTROL_STATS),
	{ REPLY(CONTROL_STATS), 592, 0, 0, { FAILURE(control_stats) },
		{ STATUS(control_stats), { AT(control_stats, reserved), 0, 0 } } },
	ID_REQUEST(CONTROL_CLOSE), STATUS_REPLY(CONTROL_CLOSE, 0),
	ID_REQUEST(CONTROL_LIST), STATUS_REPLY(CONTROL_LIST, 1),
	ID_REQUEST(CONTROL_FLUSH), STATUS_REPLY(CONTROL_FLUSH, 0),
	ID_REQUEST(CONTROL_DETACH), STATUS_REPLY(CONTROL_DETACH, 0),
	ID_REQUEST(CONTROL_LEDGER),
	{ REPLY(CONTROL_LEDGER), 608, 0, 0, { FAILURE(control_ledger) },
		{ STATUS(control_ledger), { AT(control_ledger, reserved), 0, 0 } } },
	ID_REQUEST(CONTROL_RESUMED), STATUS_REPLY(CONTROL_RESUMED, 0),
	{ REQUEST(CONTROL_CAPTURE), 24, 0, 0, { { 0 } },
		{ { AT(control_capture, what), 1, 15 }, { AT(control_capture, reserved), 0, 0 } } },
	STATUS_REPLY(CONTROL_CAPTURE, 2),
	ID_REQUEST(CONTROL_ROOM), STATUS_REPLY(CONTROL_ROOM, 0),
	{ REQUEST(CONTROL_STATUS), 32, 0, 0, { { 0 } }, { { 0 } } },
	{ REPLY(CONTROL_STATUS), 560 + 296 * 48, 0, 0, { FAILURE(control_status_page) },
		{ STATUS(control_status_page), { AT(control_status_page, count), 0, 48 },
			{ AT(control_status_page, readerless), 0, 1 }, { AT(control_status_page, reserved), 0, 0 } } },
	ID_REQUEST(CONTROL_EXPLAIN),
	{ REPLY(CONTROL_EXPLAIN), 12824, 0, 0,
		{ FAILURE(control_explained), TEXT(control_explained, kernel), TEXT(control_explained, router),
			TEXT(control_explained, pushed) },
		{ STATUS(control_explained), { AT(control_explained, exact), 0, 1 } } },

	{ REQUEST(CONTROL_ROUTER), 16, 0, 0, { { 0 } }, { { 0 } } },
	ROUTER_WELCOME("reply to CONTROL_ROUTER", CONTROL_ROUTER | CONTROL_REPLY),
	CREATE(CONTROL_PROBE_CREATE, 2),
	{ REPLY(CONTROL_PROBE_CREATE), 688, 1, 1,
		{ FAILURE(control_probe_created), TEXT(control_probe_created, system),
			TEXT(control_probe_created, event) },
		{ STATUS(control_probe_created), { AT(control_probe_created, shared), 0, 1 },
			{ AT(control_probe_created, scope), 0, 1 } } },
	SET_ENABLED(CONTROL_PROBE_ENABLE), STATUS_REPLY(CONTROL_PROBE_ENABLE, 0),
	SET_FILTER(CONTROL_PROBE_FILTER), STATUS_REPLY(CONTROL_PROBE_FILTER, 0),
	{ REQUEST(CONTROL_PROBE_CLOSE), 32, 0, 0, { { 0 } }, { { AT(control_probe_close, reserved), 0, 0 } } },
	STATUS_REPLY(CONTROL_PROBE_CLOSE, 0),
	ID_REQUEST(CONTROL_ACCOUNT), STATUS_REPLY(CONTROL_ACCOUNT, 1),
	ID_REQUEST(CONTROL_READER_FLUSH), STATUS_REPLY(CONTROL_READER_FLUSH, 0),
	{ REQUEST(CONTROL_READER_LIST), 24, 1, 1, { { 0 } }, { { 0 } } }, STATUS_REPLY(CONTROL_READER_LIST, 1),
	{ REQUEST(CONTROL_CONSUMER), 40, 1, 1, { { 0 } },
		{ { AT(control_consumer, state), 1, 2 }, { AT(control_consumer, flags), 0, 31 } } },
	STATUS_REPLY(CONTROL_CONSUMER, 0),
	{ REQUEST(CONTROL_RUNDOWN), 1048, 0, 1, { { 0 } },
		{ { AT(control_rundown, what), 1, 15 }, { AT(control_rundown, id_count), 0, 256 } } },
	STATUS_REPLY(CONTROL_RUNDOWN, 2),
	{ REQUEST(CONTROL_PROBE_KEEP), 40, 0, 0, { { 0 } },
		{ { AT(control_probe_keep, enabled), 0, 1 }, { AT(control_probe_keep, reserved), 0, 0 } } },
	STATUS_REPLY(CONTROL_PROBE_KEEP, 0),

	ID_REQUEST(CONTROL_READER_END), STATUS_REPLY(CONTROL_READER_END, 0),
	ID_REQUEST(CONTROL_READER),
	{ REPLY(CONTROL_READER), 576, 1, 1, { FAILURE(control_heir) },
		{ STATUS(control_heir), { AT(control_heir, reserved), 0, 0 } } },

	ID_REQUEST(CONTROL_SESSION_STATUS),
	{ REPLY(CONTROL_SESSION_STATUS), 704, 0, 0,
		{ FAILURE(control_session_status), TEXT(control_session_status, session),
			TEXT(control_session_status, instance) },
		{ STATUS(control_session_status), { AT(control_session_status, source), 1, 2 },
			{ AT(control_session_status, flags), 0, 15 } } },
	ID_REQUEST(CONTROL_SESSION_STOP), STATUS_REPLY(CONTROL_SESSION_STOP, 0),
	ID_REQUEST(CONTROL_SESSION_FLUSH), STATUS_REPLY(CONTROL_SESSION_FLUSH, 0),
};
#define ROWS (sizeof(table) / sizeof(table[0]))

static void set_value(struct control_message *message, size_t offset, uint32_t value)
{
	memcpy(message->bytes + offset, &value, sizeof(value));
}

/* A message that is right in every respect; the descriptors are numbers only. */
static void make(const struct expected *row, struct control_message *ret)
{
	memset(ret, 0, sizeof(*ret));
	control_header_init(&ret->header, row->type, (uint32_t)row->size, 5);
	ret->fd_count = row->fds_min;
	for (const struct value *value = row->values; value->offset; value++)
		set_value(ret, value->offset, value->low);
}

static void check_row(const struct expected *row, const struct control_message *message, int expected, const char *what)
{
	const int r = control_check(message);

	if (r != expected)
		fail_msg("%s: %s: %d", row->name, what, r);
}

static void every_type_passes_when_right(void **state)
{
	struct control_message message;

	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		make(&table[i], &message);
		check_row(&table[i], &message, 0, "right");
		message.fd_count = table[i].fds_max;
		check_row(&table[i], &message, 0, "all descriptors");
	}
}

static void every_wrong_size_is_refused(void **state)
{
	struct control_message message;

	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		make(&table[i], &message);
		for (uint32_t size = 0; size <= CONTROL_SIZE_MAX; size++) {
			message.header.size = size;
			check_row(&table[i], &message, size == table[i].size ? 0 : -EBADMSG, "size");
		}
	}
}

static void every_text_needs_its_end(void **state)
{
	struct control_message message;

	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		for (const struct text *text = table[i].texts; text->size; text++) {
			make(&table[i], &message);
			memset(message.bytes + text->offset, 'x', text->size - 1);
			check_row(&table[i], &message, 0, "as long as it may be");
			message.bytes[text->offset + text->size - 1] = 'x';
			check_row(&table[i], &message, -EBADMSG, "a text without an end");
		}
	}
}

static void every_value_has_its_range(void **state)
{
	struct control_message message;

	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		for (const struct value *value = table[i].values; value->offset; value++) {
			bool is_status = value->offset == 16 && table[i].type & CONTROL_REPLY;

			make(&table[i], &message);
			set_value(&message, value->offset, value->high);
			message.fd_count = is_status ? 0 : table[i].fds_min;
			check_row(&table[i], &message, 0, "greatest value");
			set_value(&message, value->offset, value->high + 1);
			check_row(&table[i], &message, -EBADMSG, "value too great");
			set_value(&message, value->offset, UINT32_MAX);
			check_row(&table[i], &message, -EBADMSG, "value far too great");
			set_value(&message, value->offset, value->low - 1);
			check_row(&table[i], &message, -EBADMSG, "value too small");
		}
	}
}

static void every_count_of_descriptors_is_checked(void **state)
{
	struct control_message message;

	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		make(&table[i], &message);
		for (unsigned int n = 0; n <= CONTROL_FDS_MAX; n++) {
			message.fd_count = n;
			check_row(&table[i], &message,
				n >= table[i].fds_min && n <= table[i].fds_max ? 0 : -EBADMSG, "descriptors");
		}
	}
}

static void failures_bring_no_descriptors(void **state)
{
	struct control_message message;

	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		if (!(table[i].type & CONTROL_REPLY))
			continue;
		make(&table[i], &message);
		set_value(&message, 16, EXIT_LOCATION);
		message.fd_count = 0;
		check_row(&table[i], &message, 0, "failure");
		message.fd_count = 1;
		check_row(&table[i], &message, -EBADMSG, "failure with a descriptor");
	}
}

/* A failed welcome names no source. */
static void failures_need_no_other_values(void **state)
{
	struct control_message message = { 0 };
	struct control_welcome *welcome = (void *)message.bytes;

	(void)state;
	control_header_init(&welcome->header, CONTROL_HELLO | CONTROL_REPLY, sizeof(*welcome), 1);
	assert_int_equal(control_check(&message), -EBADMSG);
	welcome->status = EXIT_NOT_PERMITTED;
	assert_int_equal(control_check(&message), 0);
}

static void no_other_type_exists(void **state)
{
	struct control_message message = { 0 };
	unsigned int known = 0;

	(void)state;
	for (uint32_t type = 0; type <= UINT16_MAX; type++) {
		bool found = false;

		for (size_t i = 0; i < ROWS; i++)
			found = found || table[i].type == type;
		known += found;
		if (found)
			continue;
		control_header_init(&message.header, (uint16_t)type, 24, 0);
		if (control_check(&message) != -EBADMSG)
			fail_msg("type %u", type);
	}
	assert_int_equal(known, ROWS);
}

static void the_version_is_checked(void **state)
{
	struct control_message message;

	(void)state;
	make(&table[0], &message);
	message.header.version++;
	assert_int_equal(control_check(&message), -EBADMSG);
}

static void fetch_texts_are_counted(void **state)
{
	struct control_message message = { 0 };
	struct control_create *create = (void *)message.bytes;

	(void)state;
	control_header_init(&create->header, CONTROL_CREATE, sizeof(*create), 1);
	create->kind = PROBE_KPROBE;
	memcpy(create->fetch, "a=$arg1\0b=$arg2", 16);
	create->fetch_count = 2;
	assert_int_equal(control_check(&message), 0);
	create->fetch_count = 3;
	assert_int_equal(control_check(&message), -EBADMSG);
	create->fetch_count = UINT32_MAX;
	assert_int_equal(control_check(&message), -EBADMSG);
	memset(create->fetch, 'x', sizeof(create->fetch));
	create->fetch_count = 1;
	assert_int_equal(control_check(&message), -EBADMSG);
	create->fetch[sizeof(create->fetch) - 1] = 0;
	assert_int_equal(control_check(&message), 0);
	create->fetch_count = 2;
	assert_int_equal(control_check(&message), -EBADMSG);
}

/* ---- the wire ---- */

static void open_pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
}

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	assert_int_equal(closedir(dir), 0);
	return count;
}

static void send_raw(int socket, const void *bytes, size_t size, unsigned int fd_count)
{
	assert_int_equal(packet_send_same(socket, bytes, size, 0, fd_count), size);
}

static void messages_travel_with_descriptors(void **state)
{
	struct control_attached sent = { .ring_capacity = 65536 };
	struct control_message message;
	int sockets[2], ends[2];
	int before = open_descriptors();
	char byte = 0;

	(void)state;
	open_pair(sockets);
	assert_int_equal(pipe(ends), 0);
	control_header_init(&sent.header, CONTROL_ATTACH | CONTROL_REPLY, sizeof(sent), 99);
	assert_int_equal(control_send(sockets[0], &sent, (int[]){ ends[0], ends[1], 0 }, 3), 0);
	assert_int_equal(control_receive(sockets[1], &message), 1);
	assert_int_equal(control_check(&message), 0);
	assert_int_equal(message.header.cookie, 99);
	assert_memory_equal(message.bytes, &sent, sizeof(sent));
	assert_int_equal(message.fd_count, 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(fcntl(message.fds[i], F_GETFD), FD_CLOEXEC);
	/* In the order in which they were given. */
	assert_int_equal(write(message.fds[1], "x", 1), 1);
	assert_int_equal(read(message.fds[0], &byte, 1), 1);
	/* One is taken, the others are closed with the message. */
	assert_int_equal(close(TAKE_FD(message.fds[1])), 0);
	control_message_release(&message);
	control_message_release(&message);
	control_message_release(NULL);
	assert_int_equal(close(ends[0]) | close(ends[1]) | close(sockets[0]) | close(sockets[1]), 0);
	assert_int_equal(open_descriptors(), before);
}

static void surplus_descriptors_are_closed(void **state)
{
	struct control_id id = { 0 };
	struct control_message message;
	int sockets[2], before;

	(void)state;
	open_pair(sockets);
	before = open_descriptors();
	control_header_init(&id.header, CONTROL_LEDGER, sizeof(id), 0);
	send_raw(sockets[0], &id, sizeof(id), CONTROL_FDS_MAX);
	assert_int_equal(control_receive(sockets[1], &message), 1);
	assert_int_equal(message.fd_count, CONTROL_FDS_MAX);
	control_message_release(&message);
	send_raw(sockets[0], &id, sizeof(id), CONTROL_FDS_MAX + 1);
	assert_int_equal(control_receive(sockets[1], &message), -EMSGSIZE);
	assert_int_equal(message.fd_count, 0);
	send_raw(sockets[0], &id, sizeof(id), 64);
	assert_int_equal(control_receive(sockets[1], &message), -EMSGSIZE);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(close(sockets[0]) | close(sockets[1]), 0);
}

static void broken_packets_are_refused(void **state)
{
	static uint8_t bytes[CONTROL_SIZE_MAX + 8];
	struct control_header *header = (void *)bytes;
	struct control_message message;
	int sockets[2], before;

	(void)state;
	open_pair(sockets);
	before = open_descriptors();
	control_header_init(header, CONTROL_LEDGER, sizeof(bytes), 0);
	send_raw(sockets[0], bytes, sizeof(bytes), 2);
	assert_int_equal(control_receive(sockets[1], &message), -EMSGSIZE);
	header->size = CONTROL_SIZE_MAX;
	send_raw(sockets[0], bytes, CONTROL_SIZE_MAX, 2);
	assert_int_equal(control_receive(sockets[1], &message), 1);
	control_message_release(&message);
	send_raw(sockets[0], bytes, CONTROL_SIZE_MAX - 1, 2);
	assert_int_equal(control_receive(sockets[1], &message), -EBADMSG);
	send_raw(sockets[0], bytes, sizeof(*header) - 1, 2);
	assert_int_equal(control_receive(sockets[1], &message), -EBADMSG);
	header->size = sizeof(*header);
	header->version++;
	send_raw(sockets[0], bytes, sizeof(*header), 2);
	assert_int_equal(control_receive(sockets[1], &message), -EBADMSG);
	/* An empty packet can't be told from the end. */
	send_raw(sockets[0], bytes, 0, 2);
	assert_int_equal(control_receive(sockets[1], &message), 0);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(close(sockets[0]) | close(sockets[1]), 0);
}

static void the_other_end_is_told_apart(void **state)
{
	struct control_id id = { 0 };
	struct control_message message;
	int sockets[2], r;

	(void)state;
	open_pair(sockets);
	control_header_init(&id.header, CONTROL_LEDGER, sizeof(id), 0);
	assert_int_equal(control_receive(sockets[1], &message), -EAGAIN);
	/* A peer that does not read costs no waiting. */
	do
		r = control_send(sockets[0], &id, NULL, 0);
	while (r == 0);
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(close(sockets[1]), 0);
	/* The socket tells once that something was left unread. */
	assert_int_equal(control_send(sockets[0], &id, NULL, 0), -ECONNRESET);
	/* No SIGPIPE, which would end this program. */
	assert_int_equal(control_send(sockets[0], &id, NULL, 0), -EPIPE);
	assert_int_equal(control_receive(sockets[0], &message), 0);
	assert_int_equal(close(sockets[0]), 0);
}

static void nonsense_is_not_sent(void **state)
{
	struct control_id id = { 0 };
	int sockets[2];

	(void)state;
	open_pair(sockets);
	control_header_init(&id.header, CONTROL_LEDGER, 15, 0);
	assert_int_equal(control_send(sockets[0], &id, NULL, 0), -EINVAL);
	id.header.size = CONTROL_SIZE_MAX + 1;
	assert_int_equal(control_send(sockets[0], &id, NULL, 0), -EINVAL);
	id.header.size = sizeof(id);
	assert_int_equal(control_send(sockets[0], &id, (int[9]){ 0 }, 9), -EINVAL);
	assert_int_equal(close(sockets[0]) | close(sockets[1]), 0);
}

/* ---- requests ---- */

struct answer {
	int socket;
	uint16_t type;
	uint64_t cookie;
	uint32_t size;
};

static void *answer_once(void *argument)
{
	const struct answer *answer = argument;
	struct control_message request;
	struct control_status reply = { 0 };

	if (control_receive(answer->socket, &request) == 1) {
		control_header_init(&reply.header, answer->type, answer->size, answer->cookie);
		if (answer->size)
			(void)control_send(answer->socket, &reply, NULL, 0);
		control_message_release(&request);
	}
	(void)close(answer->socket);
	return NULL;
}

static int call(uint16_t type, uint64_t cookie, uint32_t size)
{
	struct control_id request = { .id = 3 };
	struct control_message reply;
	struct answer answer = { .type = type, .cookie = cookie, .size = size };
	pthread_t thread;
	int sockets[2], r;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	answer.socket = sockets[1];
	assert_int_equal(pthread_create(&thread, NULL, answer_once, &answer), 0);
	control_header_init(&request.header, CONTROL_CLOSE, sizeof(request), 7);
	r = control_call(sockets[0], &request, NULL, 0, &reply);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (r == 0) {
		assert_int_equal(reply.header.cookie, 7);
		control_message_release(&reply);
		/* The peer has closed by now. */
		assert_int_equal(control_call(sockets[0], &request, NULL, 0, &reply), -ECONNRESET);
	}
	assert_int_equal(close(sockets[0]), 0);
	return r;
}

static void calls_get_their_own_reply(void **state)
{
	const uint32_t size = sizeof(struct control_status);

	(void)state;
	assert_int_equal(call(CONTROL_CLOSE | CONTROL_REPLY, 7, size), 0);
	assert_int_equal(call(CONTROL_CLOSE | CONTROL_REPLY, 8, size), -EPROTO);
	assert_int_equal(call(CONTROL_FLUSH | CONTROL_REPLY, 7, size), -EPROTO);
	assert_int_equal(call(CONTROL_CLOSE | CONTROL_REPLY, 7, size - 8), -EBADMSG);
	assert_int_equal(call(CONTROL_CLOSE | CONTROL_REPLY, 7, 0), -ECONNRESET);
}

/* ---- texts ---- */

static void failures_are_cut_between_characters(void **state)
{
	struct control_failure failure;
	char text[600];

	(void)state;
	control_failure_set(&failure, -ENOENT, 4, "no such event: %s", "x");
	assert_int_equal(failure.error, ENOENT);
	assert_int_equal(failure.position, 4);
	assert_string_equal(failure.message, "no such event: x");
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	control_failure_set(&failure, 0, -1, "%s", text);
	assert_int_equal(strlen(failure.message), 503);
	/* A character of two, three and four bytes that begins in each of the last places. */
	for (size_t begin = 499; begin < 504; begin++) {
		static const char *const characters[] = { "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };

		for (size_t i = 0; i < 3; i++) {
			size_t end = begin + strlen(characters[i]);

			memset(text, 'a', sizeof(text) - 1);
			memcpy(text + begin, characters[i], strlen(characters[i]));
			control_failure_set(&failure, 0, -1, "%s", text);
			assert_int_equal(strlen(failure.message), end > 503 ? begin : 503);
			assert_int_equal(failure.message[503], 0);
		}
	}
}

static void texts_fit_or_fail(void **state)
{
	char array[8] = "garbage";

	(void)state;
	assert_int_equal(control_text(array, sizeof(array), "12345678"), -ENAMETOOLONG);
	assert_string_equal(array, "garbage");
	assert_int_equal(control_text(array, sizeof(array), "1234567"), 0);
	assert_string_equal(array, "1234567");
	assert_int_equal(control_text(array, sizeof(array), "ab"), 0);
	/* What was there before must not travel along. */
	assert_memory_equal(array, "ab\0\0\0\0\0\0", 8);
	assert_int_equal(control_text(array, 1, ""), 0);
	assert_int_equal(control_text(array, 0, ""), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_passes_when_right),
		cmocka_unit_test(every_wrong_size_is_refused),
		cmocka_unit_test(every_text_needs_its_end),
		cmocka_unit_test(every_value_has_its_range),
		cmocka_unit_test(every_count_of_descriptors_is_checked),
		cmocka_unit_test(failures_bring_no_descriptors),
		cmocka_unit_test(failures_need_no_other_values),
		cmocka_unit_test(no_other_type_exists),
		cmocka_unit_test(the_version_is_checked),
		cmocka_unit_test(fetch_texts_are_counted),
		cmocka_unit_test(messages_travel_with_descriptors),
		cmocka_unit_test(surplus_descriptors_are_closed),
		cmocka_unit_test(broken_packets_are_refused),
		cmocka_unit_test(the_other_end_is_told_apart),
		cmocka_unit_test(nonsense_is_not_sent),
		cmocka_unit_test(calls_get_their_own_reply),
		cmocka_unit_test(failures_are_cut_between_characters),
		cmocka_unit_test(texts_fit_or_fail),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
