#include "reader/flow.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "reader/tracedir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* When the log hears of it. */
#define LONG_NS UINT64_C(5000000000)
/* How often whoever waits for an answer hears that the session lives. */
#define SIGN_NS UINT64_C(1000000000)

static uint64_t go_on(void *context)
{
	struct flow *flow = context;
	uint64_t now = loop_now();

	if (!flow->told && now - flow->began >= LONG_NS) {
		log_warning("the kernel has been busy with %s for %llu seconds: events go on, and requests wait",
			flow->path, (unsigned long long)(LONG_NS / 1000000000));
		flow->told = true;
	}
	if (!flow->error)
		flow->error = flow->source->ops->step(flow->source, now);
	/* It goes through the router into every consumer's ring. */
	source_note_clock(flow->source, now);
	(void)pool_writer_wake(flow->source->pool);
	return flow->error || flow->source->deadline > now + SIGN_NS ? now + SIGN_NS : flow->source->deadline;
}

static void begin(struct flow *flow, const char *path)
{
	flow->path = path;
	flow->began = loop_now();
	flow->told = false;
	flow->error = 0;
}

static void end(const struct flow *flow)
{
	if (flow->told)
		log_note("the kernel is done with %s after %llu ms", flow->path,
			(unsigned long long)((loop_now() - flow->began) / 1000000));
}

/* Newer kernels take the lock that a write takes for the opening already. */
static int open_file(struct flow *flow, int folder, const char *path, int flags)
{
	return loop_file(flow->loop, folder, path, flags | O_CLOEXEC, go_on, flow);
}

int flow_write(struct flow *flow, int folder, const char *path, bool append, const char *text)
{
	CLEANUP_CLOSE int fd = -1;
	ssize_t n;

	if (!flow)
		return append ? tracedir_append(folder, path, text) : tracedir_write(folder, path, text);
	begin(flow, path);
	fd = open_file(flow, folder, path, O_WRONLY | (append ? O_APPEND : 0));
	n = fd < 0 ? fd : loop_write(flow->loop, fd, text, strlen(text), go_on, flow);
	end(flow);
	if (n < 0)
		return (int)n;
	return (size_t)n == strlen(text) ? 0 : -EIO;
}

static ssize_t read_some(void *context, int fd, void *data, size_t size)
{
	struct flow *flow = context;

	return loop_fetch(flow->loop, fd, data, size, go_on, flow);
}

int flow_read(struct flow *flow, int folder, const char *path, char **ret_data, size_t *ret_size)
{
	CLEANUP_CLOSE int fd = -1;
	int r;

	if (!flow)
		return tracedir_read(folder, path, ret_data, ret_size);
	begin(flow, path);
	fd = open_file(flow, folder, path, O_RDONLY);
	r = fd < 0 ? fd : tracedir_read_by(fd, read_some, flow, ret_data, ret_size);
	end(flow);
	return r;
}

int flow_clear(struct flow *flow, int folder, const char *path)
{
	CLEANUP_CLOSE int fd = -1;

	if (!flow)
		return tracedir_clear(folder, path);
	begin(flow, path);
	fd = open_file(flow, folder, path, O_WRONLY | O_TRUNC);
	end(flow);
	return fd < 0 ? fd : 0;
}
