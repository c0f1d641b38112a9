#include "shm/segment.h"

#include "base/checked.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define PAGE 4096
/* As `repeat`: past every segment's end. */
#define NO_REPEAT (SIZE_MAX & ~(size_t)(PAGE - 1))

/* What the call before failed with, negative. Never 0, so that nobody takes the failure for
 * success. */
static int failed(void)
{
	const int error = errno;

	return error > 0 ? -error : -EIO;
}

static int memfd(const char *name)
{
	int fd;

	/* Kernels before 6.3 don't know that a memfd may be barred from execution. */
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? failed() : fd;
}

/* Maps `size` bytes of fd, and those from `repeat` on once more behind them (none when it is
 * `size`). Returns NULL on failure, with errno set. */
static void *map(int fd, size_t size, size_t repeat, bool writable)
{
	const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	uint8_t *base;

	/* The address range is reserved first, so that the fixed mappings can't hit anybody else's. */
	base = mmap(NULL, size + (size - repeat), PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return NULL;
	if (mmap(base, size, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
		(repeat < size &&
			mmap(base + size, size - repeat, protection, MAP_SHARED | MAP_FIXED, fd,
				(off_t)repeat) == MAP_FAILED)) {
		int saved = errno;

		(void)munmap(base, size + (size - repeat));
		errno = saved;
		return NULL;
	}
	return base;
}

int segment_create_repeated(const char *name, enum segment_kind kind, size_t size, size_t repeat,
	enum segment_sharing sharing, struct segment *ret)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct segment_header *header;
	CLEANUP_CLOSE int fd = -1;

	if (size < PAGE || size % PAGE || repeat > size || repeat % PAGE)
		return -EINVAL;
	fd = memfd(name);
	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)size) < 0)
		return failed();
	header = map(fd, size, repeat, true);
	if (!header)
		return failed();
	*header = (struct segment_header){
		.magic = SEGMENT_MAGIC,
		.kind = (uint16_t)kind,
		.version = SEGMENT_VERSION,
		.size = size,
	};
	/* The mapping above stays writable: FUTURE_WRITE holds for those that come. */
	if (sharing == SEGMENT_READ_ONLY)
		seals |= F_SEAL_FUTURE_WRITE;
	if (fcntl(fd, F_ADD_SEALS, seals) < 0) {
		int error = failed();

		(void)munmap(header, size + (size - repeat));
		return error;
	}
	*ret = (struct segment){
		.base = header,
		.size = size + (size - repeat),
		.fd = TAKE_FD(fd),
		.writable = true,
	};
	return 0;
}

int segment_create(const char *name, enum segment_kind kind, size_t size,
	enum segment_sharing sharing, struct segment *ret)
{
	return segment_create_repeated(name, kind, size, size, sharing, ret);
}

int segment_protect(struct segment *segment)
{
	if (mprotect(segment->base, segment->size, PROT_READ) < 0)
		return failed();
	segment->writable = false;
	return 0;
}

/* The size of a memfd with all of `seals`, or -errno. Huge pages are refused, too: where none is
 * left, touching one raises SIGBUS. */
static int64_t sealed_size(int fd, int seals)
{
	struct statfs fs;
	struct stat st;
	int have;

	have = fcntl(fd, F_GET_SEALS);
	if (have < 0)
		return failed();
	if ((have & seals) != seals)
		return -EPERM;
	if (fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return failed();
	if (fs.f_type != TMPFS_MAGIC || !S_ISREG(st.st_mode))
		return -EINVAL;
	return st.st_size;
}

/* `header` is a copy: the peer may still write to the original. */
static int check_header(const struct segment_header *header, enum segment_kind kind, size_t size)
{
	if (header->magic != SEGMENT_MAGIC || header->kind != kind)
		return -EINVAL;
	if (header->version != SEGMENT_VERSION || header->incompatible)
		return -EPROTO;
	if (header->size != size || header->reserved0 || header->reserved1[0] ||
		header->reserved1[1] || header->reserved1[2])
		return -EINVAL;
	return 0;
}

int segment_attach_repeated(int fd, enum segment_kind kind, size_t min, size_t max, size_t repeat,
	bool writable, struct segment *ret)
{
	const int64_t sealed = sealed_size(fd, F_SEAL_SHRINK);
	const size_t size = (size_t)sealed;
	struct segment_header header;
	void *base;
	int r;

	if (sealed < 0)
		return (int)sealed;
	if (size < PAGE || size < min || size > max || size % PAGE || repeat % PAGE)
		return -EINVAL;
	if (repeat > size)
		repeat = size;
	base = map(fd, size, repeat, writable);
	if (!base)
		return failed();
	memcpy(&header, base, sizeof(header));
	r = check_header(&header, kind, size);
	if (r < 0) {
		(void)munmap(base, size + (size - repeat));
		return r;
	}
	*ret = (struct segment){
		.base = base, .size = size + (size - repeat), .fd = fd, .writable = writable
	};
	return 0;
}

int segment_attach(
	int fd, enum segment_kind kind, size_t min, size_t max, bool writable, struct segment *ret)
{
	return segment_attach_repeated(fd, kind, min, max, NO_REPEAT, writable, ret);
}

void segment_release(struct segment *segment)
{
	if (!segment)
		return;
	if (segment->base)
		(void)munmap(segment->base, segment->size);
	(void)close_fd(segment->fd);
	*segment = (struct segment)SEGMENT_NONE;
}

int segment_duplicate(const int *fds, int *ret_fds, unsigned int n)
{
	int made[8];

	if (n > ARRAY_SIZE(made))
		return -EINVAL;
	for (unsigned int i = 0; i < n; i++) {
		made[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
		if (made[i] < 0) {
			int error = failed();

			while (i)
				(void)close_fd(made[--i]);
			return error;
		}
	}
	for (unsigned int i = 0; i < n; i++)
		ret_fds[i] = made[i];
	return 0;
}

int segment_blob_create(const char *name, const void *data, size_t size)
{
	CLEANUP_CLOSE int fd = -1;
	size_t done = 0;

	fd = memfd(name);
	if (fd < 0)
		return fd;
	while (done < size) {
		ssize_t n = write(fd, (const uint8_t *)data + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed();
		done += (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return failed();
	return TAKE_FD(fd);
}

int segment_blob_read(int fd, size_t max, void **ret_data, size_t *ret_size)
{
	const int64_t sealed = sealed_size(fd, F_SEAL_SHRINK | F_SEAL_WRITE);
	const size_t size = (size_t)sealed;
	CLEANUP_FREE uint8_t *data = NULL;
	size_t done = 0;

	if (sealed < 0)
		return (int)sealed;
	if (size > max)
		return -EFBIG;
	data = malloc(size + 1);
	if (!data)
		return -ENOMEM;
	while (done < size) {
		ssize_t n = pread(fd, data + done, size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed();
		/* Can't be, with the size sealed. */
		if (n == 0)
			return -EIO;
		done += (size_t)n;
	}
	data[size] = 0;
	*ret_data = TAKE_PTR(data);
	*ret_size = size;
	return 0;
}
