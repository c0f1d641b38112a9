#include "reader/replay.h"

#include "base/cleanup.h"
#include "base/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int replay_problem(struct tracedir_problem *problem, int status, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(problem->message, sizeof(problem->message), format, ap);
	va_end(ap);
	problem->status = status;
	return error;
}

int replay_read(int fd, uint64_t offset, void *bytes, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)bytes + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -ENODATA;
		done += (size_t)n;
	}
	return 0;
}

int replay_open_file(const char *path, uint64_t *ret_size, struct tracedir_problem *ret_problem)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return replay_problem(ret_problem,
			errno == EACCES ? EXIT_NOT_PERMITTED : EXIT_LOCATION, -errno, "%.250s: %s",
			path, strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return replay_problem(
			ret_problem, EXIT_LOCATION, -EINVAL, "%.250s: not a regular file", path);
	*ret_size = (uint64_t)st.st_size;
	return TAKE_FD(fd);
}

int replay_add_format(struct replay *replay, const struct replay_format *format)
{
	struct replay_format *more =
		realloc(replay->formats, (replay->format_count + 1) * sizeof(*more));
	struct replay_format *mine;
	CLEANUP_FREE char *bytes = malloc(format->format_size + 1);
	CLEANUP_FREE char *fact = NULL;
	int size;

	if (more)
		replay->formats = more;
	if (!more || !bytes)
		return -ENOMEM;
	memcpy(bytes, format->format, format->format_size);
	bytes[format->format_size] = '\0';
	/* FACT_FORMAT: system, NUL, the consumer's name, NUL, the format file. */
	size = asprintf(&fact, "%s%c%s%c%s", format->system, 0, format->name, 0, bytes);
	if (size < 0)
		return -ENOMEM;
	facts_add(&replay->facts, FACT_FORMAT, replay->format_count, fact, (size_t)size);
	mine = &replay->formats[replay->format_count++];
	*mine = *format;
	mine->id = replay->format_count;
	mine->format = TAKE_PTR(bytes);
	return replay->facts.error;
}

void replay_close(struct replay *replay)
{
	if (!replay)
		return;
	for (uint32_t i = 0; i < replay->format_count; i++)
		free(replay->formats[i].format);
	free(replay->formats);
	facts_release(&replay->facts);
	facts_release(&replay->names);
	replay->ops->close(replay);
}
