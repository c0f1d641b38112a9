/* hostile_consumer SOCKET ATTACK: a consumer that breaks whatever it can reach.
 *
 *   messages     every type of message in every state, of the right size
 *   sizes        wrong sizes, headers that lie, descriptors that are too many or where none belong
 *   ring         writes to what is the router's, and changes of the segments themselves
 *   cursor       wrong values at each step, while events flow
 *   connections  a thousand that greet and attach
 *   half-open    a thousand that say nothing
 *   flood        thousands of requests, and no answer is read
 *   filters      the same with filters, of a trace that is not enabled and of one that is
 *   stop         attaches, asks for events, and stops itself
 *   die          is killed at each step of becoming a consumer
 *
 * Prints what happened, a line each. "half-open" and "stop" stay until standard input ends or they are killed. Exit
 * status 0: everything was refused as it has to be; 1: something was not, which is said. */
#include "base/cleanup.h"
#include "shm/control.h"
#include "shm/ring.h"
#include "shm/state_abi.h"
#include "tests/support/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY      1000
#define RING_SIZE 65536
/* For an answer; nothing takes as long. */
#define PATIENCE_S 60

enum step { CONNECTED, GREETED, ATTACHED, CREATED, ENABLED, STEPS };

struct hostile {
	const char *path; /* of the socket */
	int fd;
	int ring[3];
	uint64_t trace;
};

static void die(const char *what)
{
	printf("failed: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void must(bool holds, const char *what)
{
	if (!holds)
		die(what);
}

static int dial(const char *path)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	must(fd >= 0, "socket");
	must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0, "patience");
	must(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "connect");
	return fd;
}

/* ---- becoming a consumer ---- */

static bool call(int fd, void *request, uint16_t type, uint32_t size, struct control_message *reply)
{
	control_header_init(request, type, size, 7);
	return control_call(fd, request, NULL, 0, reply) == 0;
}

static uint32_t status_of(const struct control_message *reply)
{
	return ((const struct control_status *)reply->bytes)->status;
}

static bool greet(int fd)
{
	struct control_hello hello = { .program = "hostile" };
	struct control_message reply;

	return call(fd, &hello, CONTROL_HELLO, sizeof(hello), &reply) && status_of(&reply) == 0;
}

/* Returns the status; the failure's words are in `words`. */
static uint32_t attach(struct hostile *hostile, enum ring_overflow overflow, char *words, size_t size)
{
	struct control_attach request = { .ring_capacity = RING_SIZE, .overflow = overflow };
	struct control_message reply;
	const struct control_attached *attached = (const struct control_attached *)reply.bytes;

	must(call(hostile->fd, &request, CONTROL_ATTACH, sizeof(request), &reply), "attaching");
	if (words)
		(void)snprintf(words, size, "%s", attached->failure.message);
	for (unsigned int i = 0; i < 3 && attached->status == 0; i++)
		hostile->ring[i] = TAKE_FD(reply.fds[i]);
	control_message_release(&reply);
	return attached->status;
}

static void create(struct hostile *hostile)
{
	struct control_create request = { .kind = PROBE_TRACEPOINT };
	struct control_message reply;

	(void)snprintf(request.name, sizeof(request.name), "hostile");
	(void)snprintf(request.system, sizeof(request.system), "syscalls");
	(void)snprintf(request.event, sizeof(request.event), "sys_enter_getpgid");
	must(call(hostile->fd, &request, CONTROL_CREATE, sizeof(request), &reply) && status_of(&reply) == 0, "creating");
	hostile->trace = ((const struct control_created *)reply.bytes)->trace_id;
}

static void enable(struct hostile *hostile)
{
	struct control_set_enabled request = { .id = hostile->trace, .enabled = 1 };
	struct control_message reply;

	must(call(hostile->fd, &request, CONTROL_SET_ENABLED, sizeof(request), &reply) && status_of(&reply) == 0, "enabling");
}

/* As far as `step`. */
static struct hostile become(const char *path, enum step step, enum ring_overflow overflow)
{
	struct hostile hostile = { .path = path, .ring = { -1, -1, -1 }, .fd = dial(path) };

	if (step >= GREETED)
		must(greet(hostile.fd), "greeting");
	if (step >= ATTACHED)
		must(attach(&hostile, overflow, NULL, 0) == 0, "attaching");
	if (step >= CREATED)
		create(&hostile);
	if (step >= ENABLED)
		enable(&hostile);
	return hostile;
}

static void leave(struct hostile *hostile)
{
	for (unsigned int i = 0; i < 3; i++)
		hostile->ring[i] = close_fd(hostile->ring[i]);
	hostile->fd = close_fd(hostile->fd);
}

/* ---- messages ---- */

static const struct {
	uint16_t type;
	uint32_t size;
	unsigned int steps; /* bits: where it is answered */
} known[] = {
	{ CONTROL_HELLO, sizeof(struct control_hello), 1 << CONNECTED },
	{ CONTROL_ATTACH, sizeof(struct control_attach), 1 << GREETED },
	{ CONTROL_CREATE, sizeof(struct control_create), 1 << ATTACHED },
	{ CONTROL_SCHEMA, sizeof(struct control_id), 1 << ATTACHED },
	{ CONTROL_SET_FILTER, sizeof(struct control_set_filter), 1 << ATTACHED },
	{ CONTROL_SET_SHARED, sizeof(struct control_set_filter), 1 << ATTACHED },
	{ CONTROL_SET_ENABLED, sizeof(struct control_set_enabled), 1 << ATTACHED },
	{ CONTROL_STATS, sizeof(struct control_id), 1 << ATTACHED },
	{ CONTROL_CLOSE, sizeof(struct control_id), 1 << ATTACHED },
	{ CONTROL_LIST, sizeof(struct control_id), 1 << GREETED | 1 << ATTACHED },
	{ CONTROL_FLUSH, sizeof(struct control_id), 1 << ATTACHED },
	{ CONTROL_DETACH, sizeof(struct control_id), 1 << GREETED | 1 << ATTACHED },
	{ CONTROL_LEDGER, sizeof(struct control_id), 1 << ATTACHED },
	{ CONTROL_EXPLAIN, sizeof(struct control_id), 1 << ATTACHED },
	{ CONTROL_STATUS, sizeof(struct control_status_from), 1 << GREETED | 1 << ATTACHED },
	{ CONTROL_RESUMED, sizeof(struct control_id), 1 << ATTACHED },
	{ CONTROL_ROOM, sizeof(struct control_id), 1 << ATTACHED },
	{ CONTROL_CAPTURE, sizeof(struct control_capture), 1 << ATTACHED },
	/* With a refusal: none but a reader has that to ask. */
	{ CONTROL_READER, sizeof(struct control_id), 1 << CONNECTED },
	{ CONTROL_READER_END, sizeof(struct control_id), 1 << CONNECTED },
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

/* Sends bytes as they are. True: an answer came; false: the router hung up. */
static bool is_answered(int fd, const void *bytes, size_t size, const int *fds, unsigned int fd_count)
{
	struct control_message reply;
	int r;

	must(packet_send(fd, bytes, size, fds, fd_count) == (ssize_t)size, "sending");
	r = control_receive(fd, &reply);
	must(r != -EAGAIN, "no answer, and no end of the connection either");
	if (r == 1)
		control_message_release(&reply);
	return r == 1;
}

static void fill(uint8_t *bytes, uint16_t type, uint32_t size)
{
	memset(bytes, 0, size);
	control_header_init((void *)bytes, type, size, 1);
	if (type == CONTROL_CREATE)
		((struct control_create *)(void *)bytes)->kind = PROBE_TRACEPOINT;
	if (type == CONTROL_CAPTURE && size == sizeof(struct control_capture))
		((struct control_capture *)(void *)bytes)->what = STATE_WANT_PROCESSES;
}

static unsigned int expect(const char *path, enum step step, uint16_t type, bool answered)
{
	static uint8_t bytes[CONTROL_SIZE_MAX];
	struct hostile hostile = become(path, step, RING_DROP);
	uint32_t size = sizeof(struct control_id);

	for (size_t i = 0; i < KNOWN; i++) {
		if (known[i].type == type)
			size = known[i].size;
	}
	fill(bytes, type, size);
	if (is_answered(hostile.fd, bytes, size, NULL, 0) != answered) {
		printf("failed: type %u in step %d is%s answered\n", type, (int)step, answered ? " not" : "");
		exit(1);
	}
	leave(&hostile);
	return answered;
}

static void attack_messages(const char *path)
{
	unsigned int answered = 0, sent = 0;

	for (int step = CONNECTED; step <= ATTACHED; step++) {
		for (uint16_t type = 0; type < 100; type++) {
			bool row = false;

			for (size_t i = 0; i < KNOWN; i++)
				row = row || (known[i].type == type && known[i].steps & 1U << step);
			answered += expect(path, (enum step)step, type, row);
			sent++;
		}
		for (uint16_t type = 0; type < 48; type++, sent++)
			(void)expect(path, (enum step)step, type | CONTROL_REPLY, false);
	}
	printf("%u messages, %u answered\n", sent, answered);
}

static void attack_sizes(const char *path)
{
	static const unsigned int counts[] = { 1, 2, 8, 9, 16, 253 };
	static uint8_t bytes[CONTROL_SIZE_MAX + 4096];
	unsigned int sent = 0, null = (unsigned int)open("/dev/null", O_RDONLY | O_CLOEXEC);
	int many[256];

	for (size_t i = 0; i < 256; i++)
		many[i] = (int)null;
	for (size_t i = 0; i < KNOWN; i++) {
		const uint32_t right = known[i].size;
		const uint32_t sizes[] = { 1, 8, 15, right - 1, right + 1, right + 8, CONTROL_SIZE_MAX, CONTROL_SIZE_MAX + 8 };
		enum step step = known[i].steps & 1 << CONNECTED ? CONNECTED : known[i].steps & 1 << GREETED ? GREETED : ATTACHED;

		for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]) + 3; k++, sent++) {
			const size_t lies = k - sizeof(sizes) / sizeof(sizes[0]);
			uint32_t size = k < sizeof(sizes) / sizeof(sizes[0]) ? sizes[k] : right;
			struct hostile hostile = become(path, step, RING_DROP);

			fill(bytes, known[i].type, size);
			if (size == right) {
				((struct control_header *)(void *)bytes)->size = lies == 0 ? right + 8 : lies == 1 ? 0 : UINT32_MAX;
			}
			must(!is_answered(hostile.fd, bytes, size, NULL, 0), "a message of a wrong size is answered");
			leave(&hostile);
		}
		for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++, sent++) {
			struct hostile hostile = become(path, step, RING_DROP);
			bool fits = known[i].type == CONTROL_CREATE && counts[k] == 1;

			fill(bytes, known[i].type, right);
			must(is_answered(hostile.fd, bytes, right, many, counts[k]) == fits, "descriptors where none belong");
			leave(&hostile);
		}
	}
	printf("%u messages of wrong sizes or with wrong descriptors refused\n", sent);
}

/* ---- what is the router's ---- */

static bool faults(volatile uint8_t *at)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		(void)signal(SIGSEGV, SIG_DFL);
		*at = 1;
		_exit(0);
	}
	must(waitpid(child, &status, 0) == child, "waiting");
	return WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS);
}

static void attack_ring(const char *path)
{
	struct hostile hostile = become(path, ENABLED, RING_DROP);
	struct ring_reader ring;
	int head, cursor;

	must(ring_reader_attach(hostile.ring, &ring) == 0, "attaching to the ring");
	head = ring.head.fd;
	cursor = ring.cursor.fd;
	must(faults(ring.head.base), "the ring's page can be written");
	must(faults((volatile uint8_t *)ring.data), "the ring's data can be written");
	must(mprotect(ring.head.base, 4096, PROT_READ | PROT_WRITE) < 0, "the ring's page can be made writable");
	must(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, head, 0) == MAP_FAILED, "the ring can be mapped writable");
	must(pwrite(head, "x", 1, 0) < 0, "the ring can be written by a call");
	must(ftruncate(head, 0) < 0 && ftruncate(head, 1 << 30) < 0, "the ring can be resized");
	must(ftruncate(cursor, 0) < 0 && ftruncate(cursor, 1 << 30) < 0, "the cursor can be resized");
	must(fallocate(head, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) < 0, "the ring can be punched");
	must(fcntl(head, F_ADD_SEALS, F_SEAL_WRITE) < 0 && fcntl(cursor, F_ADD_SEALS, F_SEAL_WRITE) < 0, "seals can be added");
	/* Its own page it may fill with anything, and punch. */
	memset((uint8_t *)ring.cursor.base + 64, 0xff, 4096 - 64);
	memset(ring.cursor.base, 0xff, 64);
	(void)fallocate(cursor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
	/* The pipe that wakes it, emptied and filled. */
	must(write(ring.wake_fd, "x", 1) < 0, "the wake-up can be written");
	{
		struct control_id request = { 0 };
		struct control_message reply;

		must(call(hostile.fd, &request, CONTROL_LEDGER, sizeof(request), &reply), "the router does not answer");
	}
	printf("what is the router's is read-only and sealed\n");
	ring_reader_release(&ring);
	hostile.ring[0] = hostile.ring[1] = hostile.ring[2] = -1;
	leave(&hostile);
}

/* The router has gone through its loop, twice, with what was stored. */
static void let_it_look(const struct hostile *hostile)
{
	for (int i = 0; i < 2; i++) {
		struct control_id request = { .id = hostile->trace };
		struct control_message reply;

		must(call(hostile->fd, &request, CONTROL_LEDGER, sizeof(request), &reply), "the router does not answer");
		must(call(hostile->fd, &request, CONTROL_STATS, sizeof(request), &reply), "the router does not answer");
	}
}

static void attack_cursor(const char *path)
{
	unsigned int stored = 0;

	for (int overflow = RING_DROP; overflow <= RING_OVERWRITE; overflow++) {
		struct hostile hostile = become(path, ENABLED, (enum ring_overflow)overflow);
		struct ring_reader ring;
		struct ring_cursor *cursor;
		const struct ring_head *head;

		must(ring_reader_attach(hostile.ring, &ring) == 0, "attaching to the ring");
		cursor = ring.cursor.base;
		head = ring.head.base;
		for (int i = 0; i < 60; i++, stored++) {
			const uint64_t published = __atomic_load_n(&head->published, __ATOMIC_ACQUIRE);
			uint64_t random = 0;
			const uint64_t values[] = { 0, published, published + 1, published + 8, published - 1,
				published + ring.capacity, published - ring.capacity - 1, UINT64_MAX, UINT64_C(1) << 63, published / 2 };

			must(getrandom(&random, sizeof(random), 0) == sizeof(random), "random numbers");
			__atomic_store_n(&cursor->consumed, i % 2 ? random : values[(size_t)i / 2 % 10], __ATOMIC_RELEASE);
			__atomic_store_n(&cursor->sleeps, random >> 3, __ATOMIC_RELEASE);
			let_it_look(&hostile);
		}
		ring_reader_release(&ring);
		hostile.ring[0] = hostile.ring[1] = hostile.ring[2] = -1;
		leave(&hostile);
	}
	printf("%u wrong cursors, and the router answers\n", stored);
}

/* ---- many ---- */

static void attack_connections(const char *path)
{
	struct hostile *hostiles = calloc(MANY, sizeof(*hostiles));
	unsigned int attached = 0, limited = 0;
	char words[512] = "", said[512] = "";

	must(hostiles != NULL, "memory");
	for (size_t i = 0; i < MANY; i++) {
		hostiles[i] = (struct hostile){ .fd = dial(path), .ring = { -1, -1, -1 } };
		must(greet(hostiles[i].fd), "greeting");
		if (attach(&hostiles[i], RING_DROP, words, sizeof(words)) == 0) {
			attached++;
			continue;
		}
		/* What isn't attached is not kept: that would be another limit. */
		limited++;
		memcpy(said, words, sizeof(said));
		leave(&hostiles[i]);
	}
	printf("%u attached, %u not: %s\n", attached, limited, said);
	for (size_t i = 0; i < MANY; i++)
		leave(&hostiles[i]);
	free(hostiles);
}

static void stay(void)
{
	char byte;

	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

static void attack_half_open(const char *path)
{
	static int fds[MANY];
	unsigned int away = 0;
	char said[512] = "";

	for (size_t i = 0; i < MANY; i++)
		fds[i] = dial(path);
	/* Nobody is told to wait: as many as there are too many are turned away. */
	for (size_t i = 0; i < MANY; i++) {
		struct pollfd state = { .fd = fds[i], .events = POLLIN };
		struct control_message reply;

		if (i < 64)
			continue;
		must(poll(&state, 1, PATIENCE_S * 1000) == 1 && control_receive(fds[i], &reply) == 1, "one is not turned away");
		must(control_check(&reply) == 0 && status_of(&reply) != 0, "one is welcomed");
		(void)snprintf(said, sizeof(said), "%s", ((const struct control_welcome *)reply.bytes)->failure.message);
		away++;
	}
	printf("%u turned away: %s\n", away, said);
	stay();
}

static void attack_flood(const char *path)
{
	static const uint16_t types[] = { CONTROL_LIST, CONTROL_LEDGER, CONTROL_FLUSH, CONTROL_STATS, CONTROL_EXPLAIN };
	struct hostile hostile = become(path, ENABLED, RING_DROP);
	unsigned int sent = 0;
	int r = 0;

	while (r == 0 && sent < 100000) {
		struct control_id request = { .id = hostile.trace };

		control_header_init(&request.header, types[sent % 5], sizeof(request), sent);
		r = control_send(hostile.fd, &request, NULL, 0);
		sent += r == 0;
	}
	must(r == -EPIPE || r == -ECONNRESET, "the router goes on although nobody reads its answers");
	printf("hung up after %u requests\n", sent);
	leave(&hostile);
}

/* The router has more to do to such a trace than to answer. */
static void attack_filters(const char *path)
{
	for (int step = CREATED; step <= ENABLED; step++) {
		struct hostile hostile = become(path, (enum step)step, RING_DROP);
		unsigned int sent = 0;
		int r = 0;

		while (r == 0 && sent < 100000) {
			struct control_set_filter request = { .id = hostile.trace };

			(void)snprintf(request.filter, sizeof(request.filter), "pid == %u", sent);
			control_header_init(&request.header, CONTROL_SET_FILTER, sizeof(request), sent);
			r = control_send(hostile.fd, &request, NULL, 0);
			sent += r == 0;
		}
		must(r == -EPIPE || r == -ECONNRESET, "the router goes on although nobody reads its answers");
		printf("hung up after %u filters\n", sent);
		leave(&hostile);
	}
}

static void attack_stop(const char *path)
{
	struct hostile hostile = become(path, ENABLED, RING_DROP);

	printf("live\n");
	(void)fflush(stdout);
	(void)raise(SIGSTOP);
	leave(&hostile);
}

static void attack_die(const char *path)
{
	unsigned int killed = 0;

	for (int i = 0; i < 12 * STEPS; i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			(void)become(path, (enum step)(i % STEPS), (enum ring_overflow)(i / STEPS % 2));
			(void)raise(SIGKILL);
		}
		must(waitpid(child, &status, 0) == child, "waiting");
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	}
	printf("%u killed\n", killed);
	must(killed == 12 * STEPS, "not all");
}

static const struct {
	const char *name;
	void (*run)(const char *path);
} attacks[] = {
	{ "messages", attack_messages },
	{ "sizes", attack_sizes },
	{ "ring", attack_ring },
	{ "cursor", attack_cursor },
	{ "connections", attack_connections },
	{ "half-open", attack_half_open },
	{ "flood", attack_flood },
	{ "filters", attack_filters },
	{ "stop", attack_stop },
	{ "die", attack_die },
};

int main(int argc, char *argv[])
{
	for (size_t i = 0; argc == 3 && i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (strcmp(argv[2], attacks[i].name) != 0)
			continue;
		attacks[i].run(argv[1]);
		return 0;
	}
	fprintf(stderr, "usage: hostile_consumer SOCKET ATTACK\n");
	return 2;
}
