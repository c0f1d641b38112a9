#include "consumers/client/target.h"

#include "base/cleanup.h"
#include "consumers/client/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct target *find(const struct tfan *tfan, const struct stat *st)
{
	for (size_t i = 0; i < tfan->trace_count; i++) {
		struct target *target = tfan->traces[i]->target;

		if (target && target->device == st->st_dev && target->inode == st->st_ino)
			return target;
	}
	return NULL;
}

int target_get(const struct tfan *tfan, int fd, struct target **ret)
{
	struct target *target;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	target = find(tfan, &st);
	if (!target) {
		target = calloc(1, sizeof(*target));
		if (!target)
			return -ENOMEM;
		target->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (target->fd < 0) {
			int error = errno;

			free(target);
			return -error;
		}
		target->device = st.st_dev;
		target->inode = st.st_ino;
	}
	target->references++;
	*ret = target;
	return 0;
}

void target_put(struct target *target)
{
	if (!target || --target->references > 0)
		return;
	target->fd = close_fd(target->fd);
	free(target);
}
