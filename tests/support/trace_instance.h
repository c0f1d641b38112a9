/* A tracefs instance of the test's own, with probes of its own: made, driven and removed. Nothing else in
 * tracefs is touched. Every function here fails the test where the kernel refuses. */
#ifndef TRACEFAN_TESTS_SUPPORT_TRACE_INSTANCE_H
#define TRACEFAN_TESTS_SUPPORT_TRACE_INSTANCE_H

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct trace_instance {
	char tracefs[256]; /* where it is mounted */
	char name[64];     /* of the instance, and, with '_' for '-', of the probes' group */
	char group[64];
};

/* Why there can be no instance; NULL: there can. */
static inline const char *trace_instance_missing(void)
{
	const char *tracefs = getenv("TRACEFAN_TRACEFS");
	char path[300];

	(void)snprintf(path, sizeof(path), "%s/instances", tracefs ? tracefs : "/sys/kernel/tracing");
	if (geteuid() != 0)
		return "needs root";
	return access(path, W_OK) < 0 ? "tracefs isn't mounted" : NULL;
}

/* The path of a file of the instance; of tracefs itself where it begins with '/'. */
static inline const char *trace_instance_path(const struct trace_instance *instance, const char *file, char *path,
	size_t room)
{
	int size;

	if (file[0] == '/')
		size = snprintf(path, room, "%s%s", instance->tracefs, file);
	else
		size = snprintf(path, room, "%s/instances/%s/%s", instance->tracefs, instance->name, file);
	assert(size > 0 && (size_t)size < room);
	(void)size;
	return path;
}

static inline int trace_instance_open(const struct trace_instance *instance, const char *file, int flags)
{
	char path[512];

	return open(trace_instance_path(instance, file, path, sizeof(path)), flags | O_CLOEXEC);
}

/* Returns 0 or -errno. */
__attribute__((format(printf, 3, 4)))
static inline int trace_instance_write(const struct trace_instance *instance, const char *file, const char *format, ...)
{
	char text[2048];
	va_list arguments;
	int fd, size, r = 0;

	va_start(arguments, format);
	size = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	assert(size >= 0 && (size_t)size < sizeof(text));
	fd = trace_instance_open(instance, file, O_WRONLY | O_APPEND);
	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)size) != size)
		r = -errno;
	(void)close(fd);
	return r;
}

/* All that reading the file gives now, NUL-ended, the caller's to free; NULL where it can't be read. */
static inline char *trace_instance_read(const struct trace_instance *instance, const char *file, size_t *ret_size)
{
	int fd = trace_instance_open(instance, file, O_RDONLY | O_NONBLOCK);
	size_t room = 1 << 16, size = 0;
	char *text = malloc(room);
	ssize_t n;

	if (fd < 0 || !text) {
		free(text);
		return NULL;
	}
	while ((n = read(fd, text + size, room - size - 1)) > 0) {
		size += (size_t)n;
		if (size + (1 << 14) > room) {
			room *= 2;
			text = realloc(text, room);
			assert(text);
		}
	}
	(void)close(fd);
	text[size] = '\0';
	if (ret_size)
		*ret_size = size;
	return text;
}

static inline void trace_instance_create(struct trace_instance *instance, const char *part)
{
	const char *tracefs = getenv("TRACEFAN_TRACEFS");
	char path[512];
	int r;

	(void)snprintf(instance->tracefs, sizeof(instance->tracefs), "%s", tracefs ? tracefs : "/sys/kernel/tracing");
	(void)snprintf(instance->name, sizeof(instance->name), "tracefan-%s-%d", part, (int)getpid());
	(void)snprintf(instance->group, sizeof(instance->group), "tracefan_%s_%d", part, (int)getpid());
	r = mkdir(trace_instance_path(instance, "", path, sizeof(path)), 0700);
	assert(r == 0);
	r = trace_instance_write(instance, "tracing_on", "0");
	assert(r == 0);
	r = trace_instance_write(instance, "trace_clock", "mono");
	assert(r == 0);
	(void)r;
}

static inline void trace_instance_remove(const struct trace_instance *instance)
{
	char path[512];
	int r;

	(void)trace_instance_write(instance, "tracing_on", "0");
	(void)trace_instance_write(instance, "events/enable", "0");
	r = rmdir(trace_instance_path(instance, "", path, sizeof(path)));
	assert(r == 0);
	(void)r;
}

#endif
