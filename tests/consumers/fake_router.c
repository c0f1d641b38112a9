#include "tests/consumers/fake_router.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/exit_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A test that can't be set up is no test result: it ends here, loudly. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);      \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static void add_field(struct schema_builder *builder, const char *name, const char *type,
	struct schema_field field)
{
	field.name = (uint32_t)schema_builder_string(builder, name);
	field.type = (uint32_t)schema_builder_string(builder, type);
	MUST(schema_builder_field(builder, &field) >= 0);
}

void fake_schema(bool big_endian, void **ret, size_t *ret_size)
{
	struct schema_builder builder;

	schema_builder_init(&builder);
	builder.header.flags = big_endian ? SCHEMA_BIG_ENDIAN : 0;
	builder.header.fixed_size = offsetof(struct fake_payload, path);
	builder.header.system = (uint32_t)schema_builder_string(&builder, "sched");
	builder.header.event = (uint32_t)schema_builder_string(&builder, "sched_fake");
	add_field(&builder, "common_pid", "int", (struct schema_field){ .offset = 4, .size = 4,
		.kind = SCHEMA_INTEGER, .flags = SCHEMA_SIGNED | SCHEMA_COMMON });
	add_field(&builder, "n", "int", (struct schema_field){ .offset = 8, .size = 4, .kind = SCHEMA_INTEGER,
		.flags = SCHEMA_SIGNED });
	add_field(&builder, "canary", "u64", (struct schema_field){ .offset = 16, .size = 8,
		.kind = SCHEMA_INTEGER, .flags = SCHEMA_HIDDEN });
	add_field(&builder, "path", "char[]", (struct schema_field){ .offset = 12, .size = 4, .element_size = 1,
		.kind = SCHEMA_STRING, .place = SCHEMA_DATA_LOC });
	add_field(&builder, "address", "unsigned long", (struct schema_field){ .offset = 16, .size = 8,
		.kind = SCHEMA_INTEGER, .display = SCHEMA_HEX, .flags = SCHEMA_POINTER });
	add_field(&builder, "small", "s8", (struct schema_field){ .offset = 24, .size = 1, .kind = SCHEMA_INTEGER,
		.flags = SCHEMA_SIGNED });
	add_field(&builder, "bytes", "u8[7]", (struct schema_field){ .offset = 25, .size = 7, .element_size = 1,
		.count = 7, .kind = SCHEMA_BYTES });
	MUST(schema_builder_finish(&builder, ret, ret_size) == 0);
	schema_builder_release(&builder);
}

struct fake_payload fake_payload(int32_t n, const char *path)
{
	struct fake_payload payload = {
		.common_type = 300, .common_pid = 42, .n = n, .address = 0xffff888012345678U, .small = -3,
		.bytes = { 1, 2, 3, 4, 5, 6, 250 },
	};
	size_t size = strlen(path) + 1;

	MUST(size <= sizeof(payload.path));
	memcpy(payload.path, path, size);
	payload.path_word = (uint32_t)(offsetof(struct fake_payload, path) | size << 16);
	return payload;
}

/* ---- answers ---- */

static void answer(struct fake_router *router, const struct control_message *request, void *reply, uint32_t size,
	const int *fds, unsigned int fd_count)
{
	control_header_init(reply, request->header.type | CONTROL_REPLY, size, request->header.cookie);
	/* A client that has gone does not read its answers. */
	(void)control_send(router->socket, reply, fds, fd_count);
}

static void answer_status(struct fake_router *router, const struct control_message *request, int fd)
{
	struct control_status reply = { .failure.position = -1 };

	answer(router, request, &reply, sizeof(reply), &fd, fd >= 0);
}

static void answer_blob(struct fake_router *router, const struct control_message *request, const void *bytes,
	size_t size)
{
	int fd = segment_blob_create("fake", bytes, size);

	MUST(fd >= 0);
	answer_status(router, request, fd);
	(void)close(fd);
}

static void answer_hello(struct fake_router *router, const struct control_message *request)
{
	struct control_welcome reply = {
		.source = router->source, .flags = router->welcome_flags, .session = FAKE_SESSION,
	};

	answer(router, request, &reply, sizeof(reply), NULL, 0);
}

static void answer_attach(struct fake_router *router, const struct control_message *request)
{
	struct control_attached reply = { 0 };
	uint64_t capacity = RING_CAPACITY_MIN;
	int fds[3];

	memcpy(&router->attach, request->bytes, sizeof(router->attach));
	while (capacity < router->attach.ring_capacity)
		capacity *= 2;
	/* Of a connection before. */
	if (router->attached)
		ring_writer_release(&router->ring);
	MUST(ring_writer_create(capacity, (enum ring_overflow)router->attach.overflow, &router->ring) == 0);
	router->attached = true;
	MUST(ring_writer_share(&router->ring, fds) == 0);
	reply.ring_capacity = capacity;
	answer(router, request, &reply, sizeof(reply), fds, 3);
	for (size_t i = 0; i < 3; i++)
		(void)close(fds[i]);
}

static void answer_create(struct fake_router *router, const struct control_message *request)
{
	struct control_created reply = { .trace_id = router->next_id };

	memcpy(&router->create, request->bytes, sizeof(router->create));
	if (router->create.trace_id)
		reply.trace_id = router->create.trace_id;
	else
		router->next_id++;
	memset(router->target, 0, sizeof(router->target));
	if (request->fd_count == 1) {
		char link[64];

		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", request->fds[0]);
		MUST(readlink(link, router->target, sizeof(router->target) - 1) > 0);
	}
	answer(router, request, &reply, sizeof(reply), NULL, 0);
}

static void answer_stats(struct fake_router *router, const struct control_message *request)
{
	struct control_stats reply = { .trace = router->stats };

	answer(router, request, &reply, sizeof(reply), NULL, 0);
}

static void answer_ledger(struct fake_router *router, const struct control_message *request)
{
	struct control_ledger reply = { .session = { .committed = 10, .decoded = 7, .undecodable = 1,
						.lost_kernel = 2, .dropped = 5 },
		.kept = { .hits = 90, .probes = 2, .others = 1 } };

	answer(router, request, &reply, sizeof(reply), NULL, 0);
}

static void answer_flush(struct fake_router *router, const struct control_message *request)
{
	struct record_flushed flushed = { .cookie = request->header.cookie };
	struct record_header *record;

	if (router->swallow_flush) {
		answer_status(router, request, -1);
		return;
	}
	record = ring_writer_reserve(&router->ring, sizeof(*record) + sizeof(flushed));
	MUST(record);
	*record = (struct record_header){ .size = sizeof(*record) + sizeof(flushed), .kind = RECORD_FLUSHED,
		.cpu = RECORD_CPU_NONE, .payload_size = sizeof(flushed) };
	memcpy(record + 1, &flushed, sizeof(flushed));
	(void)ring_writer_publish(&router->ring);
	answer_status(router, request, -1);
}

/* Every reply begins with header, status and a reserved word, or has its status there. */
static void refuse(struct fake_router *router, const struct control_message *request)
{
	struct control_welcome welcome = { .status = router->refuse_status, .source = SOURCE_RAW,
		.failure = router->refuse };
	struct control_attached attached = { .status = router->refuse_status, .failure = router->refuse };
	struct control_created created = { .status = router->refuse_status, .failure = router->refuse };
	struct control_stats stats = { .status = router->refuse_status, .failure = router->refuse };
	struct control_status status = { .status = router->refuse_status, .failure = router->refuse };

	switch (request->header.type) {
	case CONTROL_HELLO:
		answer(router, request, &welcome, sizeof(welcome), NULL, 0);
		break;
	case CONTROL_ATTACH:
		answer(router, request, &attached, sizeof(attached), NULL, 0);
		break;
	case CONTROL_CREATE:
		answer(router, request, &created, sizeof(created), NULL, 0);
		break;
	case CONTROL_STATS:
	case CONTROL_LEDGER:
		answer(router, request, &stats, sizeof(stats), NULL, 0);
		break;
	default:
		answer(router, request, &status, sizeof(status), NULL, 0);
		break;
	}
}

static void serve(struct fake_router *router, const struct control_message *request)
{
	if (router->log_count < FAKE_LOG_MAX) {
		router->log[router->log_count] = request->header.type;
		router->log_ids[router->log_count++] =
			request->header.size > sizeof(request->header) ?
				((const struct control_id *)request->bytes)->id : 0;
	}
	if (request->header.type == router->die_at) {
		router->ring.wake_fd = close_fd(router->ring.wake_fd);
		router->down = true;
		(void)shutdown(router->socket, SHUT_RDWR);
		return;
	}
	if (request->header.type == router->refuse_type && router->refuse_after-- == 0) {
		router->refuse_after = 0;
		refuse(router, request);
		return;
	}
	switch (request->header.type) {
	case CONTROL_HELLO:
		answer_hello(router, request);
		break;
	case CONTROL_ATTACH:
		answer_attach(router, request);
		break;
	case CONTROL_CREATE:
		answer_create(router, request);
		break;
	case CONTROL_SCHEMA:
		answer_blob(router, request, router->schema, router->schema_size);
		break;
	case CONTROL_LIST:
		answer_blob(router, request, router->list, strlen(router->list));
		break;
	case CONTROL_STATS:
		answer_stats(router, request);
		break;
	case CONTROL_LEDGER:
		answer_ledger(router, request);
		break;
	case CONTROL_FLUSH:
		answer_flush(router, request);
		break;
	case CONTROL_SET_FILTER:
	case CONTROL_SET_SHARED:
		memcpy(&router->set_filter, request->bytes, sizeof(router->set_filter));
		answer_status(router, request, -1);
		break;
	default:
		answer_status(router, request, -1);
		break;
	}
}

/* Serves one client until it or the test hangs up. */
static void serve_client(struct fake_router *router, int fd)
{
	struct control_message request;

	while (control_receive(fd, &request) == 1) {
		pthread_mutex_lock(&router->lock);
		/* The client's requests are well-formed. */
		MUST(control_check(&request) == 0);
		serve(router, &request);
		control_message_release(&request);
		pthread_mutex_unlock(&router->lock);
	}
}

static void *run(void *context)
{
	struct fake_router *router = context;
	int fd;

	while ((fd = accept4(router->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		pthread_mutex_lock(&router->lock);
		while (router->down && !router->stopping)
			pthread_cond_wait(&router->changed, &router->lock);
		router->socket = fd;
		pthread_mutex_unlock(&router->lock);
		serve_client(router, fd);
		pthread_mutex_lock(&router->lock);
		router->socket = close_fd(router->socket);
		pthread_mutex_unlock(&router->lock);
	}
	return NULL;
}

/* ---- life ---- */

void fake_router_start(struct fake_router *router)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char folder[96];

	memset(router, 0, sizeof(*router));
	router->cpu = 1;
	(void)snprintf(router->directory, sizeof(router->directory), "/tmp/tracefan-fake-XXXXXX");
	MUST(mkdtemp(router->directory));
	(void)snprintf(folder, sizeof(folder), "%s/%s", router->directory, FAKE_SESSION);
	MUST(mkdir(folder, 0700) == 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/consumers.sock", folder);
	router->socket = -1;
	router->source = SOURCE_RAW;
	router->next_id = 1000;
	router->list = "";
	router->refuse.position = -1;
	fake_schema(false, &router->schema, &router->schema_size);
	router->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	MUST(router->listener >= 0);
	MUST(bind(router->listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	MUST(listen(router->listener, 1) == 0);
	MUST(pthread_mutex_init(&router->lock, NULL) == 0);
	MUST(pthread_cond_init(&router->changed, NULL) == 0);
	MUST(pthread_create(&router->thread, NULL, run, router) == 0);
}

void fake_router_hang_up(struct fake_router *router)
{
	pthread_mutex_lock(&router->lock);
	/* A dead router's end of the wake-up is closed, too. */
	if (router->attached)
		router->ring.wake_fd = close_fd(router->ring.wake_fd);
	router->down = true;
	(void)shutdown(router->socket, SHUT_RDWR);
	pthread_mutex_unlock(&router->lock);
}

void fake_router_succeed(struct fake_router *router)
{
	pthread_mutex_lock(&router->lock);
	if (router->attached)
		ring_writer_release(&router->ring);
	router->attached = false;
	router->log_count = 0;
	router->down = false;
	pthread_cond_signal(&router->changed);
	pthread_mutex_unlock(&router->lock);
}

void fake_router_stop(struct fake_router *router)
{
	char path[128];

	(void)shutdown(router->listener, SHUT_RDWR);
	pthread_mutex_lock(&router->lock);
	router->stopping = true;
	pthread_cond_signal(&router->changed);
	if (router->socket >= 0)
		(void)shutdown(router->socket, SHUT_RDWR);
	pthread_mutex_unlock(&router->lock);
	pthread_join(router->thread, NULL);
	router->listener = close_fd(router->listener);
	if (router->attached)
		ring_writer_release(&router->ring);
	free(router->schema);
	(void)snprintf(path, sizeof(path), "%s/%s/consumers.sock", router->directory, FAKE_SESSION);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/%s", router->directory, FAKE_SESSION);
	(void)rmdir(path);
	(void)rmdir(router->directory);
	pthread_cond_destroy(&router->changed);
	pthread_mutex_destroy(&router->lock);
}

/* ---- records ---- */

void fake_router_record(struct fake_router *router, uint8_t kind, uint64_t trace_id, uint64_t time,
	const void *payload, size_t size)
{
	struct record_header *record;
	size_t whole = align_up(sizeof(*record) + size, RECORD_ALIGN);

	pthread_mutex_lock(&router->lock);
	record = ring_writer_reserve(&router->ring, whole);
	MUST(record);
	memset(record, 0, whole);
	*record = (struct record_header){
		.size = (uint32_t)whole, .kind = kind, .cpu = router->cpu, .time = time, .trace_id = trace_id, .pid = 42,
		.payload_size = (uint32_t)size, .flags = RECORD_COMM | router->flags, .comm = "fake",
	};
	if (size)
		memcpy(record + 1, payload, size);
	pthread_mutex_unlock(&router->lock);
}

void fake_router_event(struct fake_router *router, uint64_t trace_id, uint64_t time, int32_t n)
{
	struct fake_payload payload = fake_payload(n, "/etc/hosts");

	fake_router_record(router, RECORD_EVENT, trace_id, time, &payload, sizeof(payload));
}

void fake_router_stacked(struct fake_router *router, uint64_t trace_id, uint64_t time, int32_t n, const void *stack, size_t size)
{
	const size_t whole = align_up(sizeof(struct record_header) + sizeof(struct fake_payload), RECORD_ALIGN);

	fake_router_event(router, trace_id, time, n);
	pthread_mutex_lock(&router->lock);
	((struct record_header *)(void *)(router->ring.at - whole))->flags |= RECORD_STACKED;
	pthread_mutex_unlock(&router->lock);
	if (size)
		fake_router_record(router, RECORD_STACK, trace_id, time, stack, size);
}

void fake_router_publish(struct fake_router *router)
{
	pthread_mutex_lock(&router->lock);
	(void)ring_writer_publish(&router->ring);
	pthread_mutex_unlock(&router->lock);
}

size_t fake_router_requests(struct fake_router *router, uint16_t type)
{
	size_t n = 0;

	pthread_mutex_lock(&router->lock);
	for (size_t i = 0; i < router->log_count; i++)
		n += router->log[i] == type;
	pthread_mutex_unlock(&router->lock);
	return n;
}
