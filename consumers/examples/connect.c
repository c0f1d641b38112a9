/* Connections as programs make them: where to, by which descriptor, and how it went. Three places
 * in the kernel tell one story: connect(2) is entered with a descriptor, TCP sees the address (in
 * the kernel's memory already, so that no other thread can change it any more), and connect(2)
 * returns.
 *
 * usage: example-connect [SESSION] */
#include <tracefan.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define CALLS_MAX 1024

struct entry {
	int fd;
};

/* What follows the family is IPv4's and IPv6's by the same names: nobody reads the one that isn't
 * meant. */
struct address {
	unsigned short family, port;
	unsigned int v4;
	unsigned long long v6_head, v6_tail; /* as they lie in memory */
};

struct outcome {
	int result;
};

/* int __sys_connect(int fd, struct sockaddr __user *uservaddr, int addrlen); */
static const struct tfan_member entry_members[] = {
	{ TFAN_MEMBER(struct entry, fd), .fetch = "$arg1" },
};
/* int inet_stream_connect(struct socket *sock, struct sockaddr *uaddr, int addr_len, int flags); */
static const struct tfan_member address_members[] = {
	{ TFAN_MEMBER(struct address, family), .fetch = "+0($arg2)" },
	{ TFAN_MEMBER(struct address, port), .fetch = "+2($arg2)", .is_big_endian = true },
	{ TFAN_MEMBER(struct address, v4), .fetch = "+4($arg2)" },
	{ TFAN_MEMBER(struct address, v6_head), .fetch = "+8($arg2)" },
	{ TFAN_MEMBER(struct address, v6_tail), .fetch = "+16($arg2)" },
};
static const struct tfan_member outcome_members[] = {
	{ TFAN_MEMBER(struct outcome, result), .fetch = "$retval" },
};

/* A thread is in one call at a time. */
struct call {
	int pid; /* 0: free */
	int fd;
	bool has_address;
	struct address address;
};

static struct call *call_of(struct call *calls, int pid)
{
	for (struct call *call = calls; call < calls + CALLS_MAX; call++)
		if (call->pid == pid)
			return call;
	return NULL;
}

static void entered(void *context, const struct tfan_event *event, const void *filled)
{
	struct call *calls = context, *call = call_of(calls, tfan_event_pid(event));

	/* One whose return was missed is overwritten. */
	if (!call)
		call = call_of(calls, 0);
	if (!call) {
		fprintf(stderr, "example-connect: more than %d calls at a time; one is left out\n",
			CALLS_MAX);
		return;
	}
	*call = (struct call){ .pid = tfan_event_pid(event),
		.fd = ((const struct entry *)filled)->fd };
}

static void addressed(void *context, const struct tfan_event *event, const void *filled)
{
	struct call *call = call_of(context, tfan_event_pid(event));

	if (!call)
		return;
	call->address = *(const struct address *)filled;
	call->has_address = true;
}

static void print_address(const struct address *address)
{
	unsigned long long v6[] = { address->v6_head, address->v6_tail };
	char text[INET6_ADDRSTRLEN] = "?";

	if (address->family == AF_INET)
		printf("%s:%u", inet_ntop(AF_INET, &address->v4, text, sizeof(text)),
			address->port);
	else if (address->family == AF_INET6)
		printf("[%s]:%u", inet_ntop(AF_INET6, v6, text, sizeof(text)), address->port);
	else
		printf("family %u", address->family);
}

static void returned(void *context, const struct tfan_event *event, const void *filled)
{
	struct call *call = call_of(context, tfan_event_pid(event));
	int result = ((const struct outcome *)filled)->result;

	if (!call)
		return;
	/* What isn't TCP, a local socket for one, never came by the second place. */
	if (call->has_address) {
		printf("%d %s: descriptor %d to ", call->pid, tfan_event_comm(event), call->fd);
		print_address(&call->address);
		printf(": %s\n", result < 0 ? strerror(-result) : "connected");
	}
	call->pid = 0;
}

static int fail(struct tfan *tfan)
{
	fprintf(stderr, "example-connect: %s\n",
		tfan ? tfan_failure(tfan)->message : "out of memory");
	tfan_close(tfan);
	return 1;
}

static int trace(struct tfan *tfan, struct call *calls)
{
	static const struct tfan_shape entry = TFAN_SHAPE(struct entry, entry_members);
	static const struct tfan_shape address = TFAN_SHAPE(struct address, address_members);
	struct tfan_shape outcome = TFAN_SHAPE(struct outcome, outcome_members);
	struct tfan_trace *traces[3];

	outcome.at_return = true;
	if (tfan_trace_kprobe(tfan, "__sys_connect", &entry, entered, calls, &traces[0]) < 0 ||
		tfan_trace_kprobe(
			tfan, "inet_stream_connect", &address, addressed, calls, &traces[1]) < 0 ||
		tfan_trace_kprobe(tfan, "__sys_connect", &outcome, returned, calls, &traces[2]) < 0)
		return -1;
	for (int i = 0; i < 3; i++)
		if (tfan_trace_set_enabled(traces[i], true) < 0)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	static struct call calls[CALLS_MAX];
	struct tfan_options options = TFAN_OPTIONS;
	struct tfan *tfan;

	options.session = argc > 1 ? argv[1] : NULL;
	if (tfan_open(&options, &tfan) < 0 || trace(tfan, calls) < 0)
		return fail(tfan);
	fprintf(stderr, "example-connect: tracing\n");
	setlinebuf(stdout);
	while (tfan_dispatch(tfan, 0) >= 0 && tfan_wait(tfan, -1) >= 0)
		;
	return fail(tfan);
}
