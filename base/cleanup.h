/* Cleanup attributes: a variable declared with one of these is released when it goes out of scope. */
#ifndef TRACEFAN_BASE_CLEANUP_H
#define TRACEFAN_BASE_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Closes fd if it is one (>= 0), keeps errno, and returns -1 for the caller to store. */
static inline int close_fd(int fd)
{
	if (fd >= 0) {
		int saved = errno;

		(void)close(fd);
		errno = saved;
	}
	return -1;
}

static inline void cleanup_close(const int *fd)
{
	(void)close_fd(*fd);
}

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

#define CLEANUP_CLOSE __attribute__((cleanup(cleanup_close)))
#define CLEANUP_FREE  __attribute__((cleanup(cleanup_free)))

/* Takes an owned descriptor out of its variable, so that the cleanup attribute leaves it alone. */
#define TAKE_FD(fd)                                                                                \
	__extension__({                                                                            \
		int *take_fd_ = &(fd);                                                             \
		int taken_fd_ = *take_fd_;                                                         \
		*take_fd_ = -1;                                                                    \
		taken_fd_;                                                                         \
	})

/* The same for an owned pointer. */
#define TAKE_PTR(p)                                                                                \
	__extension__({                                                                            \
		__typeof__(p) *take_ptr_ = &(p);                                                   \
		__typeof__(p) taken_ptr_ = *take_ptr_;                                             \
		*take_ptr_ = NULL;                                                                 \
		taken_ptr_;                                                                        \
	})

#endif
