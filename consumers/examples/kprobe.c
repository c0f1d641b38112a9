/* Files that are opened for writing, from a function of the kernel: a string in the calling program's memory, and
 * flags that the kernel is asked to compare before it records anything.
 *
 * usage: example-kprobe [SESSION] */
#include <tracefan.h>

#include <stdio.h>

struct opening {
	struct tfan_string_address path;
	uint64_t flags;
	unsigned int access; /* 0 reading, 1 writing, 2 both */
};

/* long do_sys_openat2(int dfd, const char __user *filename, struct open_how *how); how->flags is its first
 * eight bytes. */
static const struct tfan_member members[] = {
	{ TFAN_MEMBER(struct opening, path), .fetch = "$arg2", .user_memory = true },
	{ TFAN_MEMBER(struct opening, flags), .fetch = "+0($arg3)" },
	{ TFAN_MEMBER(struct opening, access), .fetch = "+0($arg3)", TFAN_BITS(0, 1), .condition = "access != 0" },
};
static const struct tfan_shape shape = TFAN_SHAPE(struct opening, members);

static void opened(void *context, const struct tfan_event *event, const void *filled)
{
	const struct opening *opening = filled;

	(void)context;
	printf("%d %s: %s (at 0x%llx), flags 0%llo\n", tfan_event_pid(event), tfan_event_comm(event),
		opening->path.string, (unsigned long long)opening->path.address, (unsigned long long)opening->flags);
}

static int fail(struct tfan *tfan)
{
	fprintf(stderr, "example-kprobe: %s\n", tfan ? tfan_failure(tfan)->message : "out of memory");
	tfan_close(tfan);
	return 1;
}

int main(int argc, char **argv)
{
	struct tfan_options options = TFAN_OPTIONS;
	struct tfan_trace *trace;
	struct tfan *tfan;

	options.session = argc > 1 ? argv[1] : NULL;
	if (tfan_open(&options, &tfan) < 0)
		return fail(tfan);
	if (tfan_trace_kprobe(tfan, "do_sys_openat2", &shape, opened, NULL, &trace) < 0 ||
		tfan_trace_set_enabled(trace, true) < 0)
		return fail(tfan);
	fprintf(stderr, "example-kprobe: tracing\n");
	setlinebuf(stdout);
	while (tfan_dispatch(tfan, 0) >= 0 && tfan_wait(tfan, -1) >= 0)
		;
	return fail(tfan);
}
