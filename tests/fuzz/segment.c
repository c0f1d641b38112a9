/* Any bytes as what a peer sent in a descriptor: a memfd of any size and seals, attached as each
 * kind of segment and read as a blob. The first byte is the seals, the second the size in 64 bytes. */
#include "shm/segment.h"
#include "tests/support/fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void attach(int fd, enum segment_kind kind, size_t repeat, bool writable)
{
	struct segment segment = SEGMENT_NONE;
	volatile uint8_t sum = 0;

	if (segment_attach_repeated(fd, kind, 1, 1 << 16, repeat, writable, &segment) < 0) {
		if (segment.base || segment.fd != -1)
			abort();
		return;
	}
	for (size_t i = 0; i < segment.size; i += 64)
		sum = (uint8_t)(sum + ((uint8_t *)segment.base)[i]);
	segment.fd = -1;
	segment_release(&segment);
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	void *data = NULL;
	size_t length;
	int fd;

	if (size < 2)
		return;
	fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return;
	if (ftruncate(fd, (off_t)bytes[1] * 64) == 0 && pwrite(fd, bytes + 2, size - 2, 0) >= 0 &&
		fcntl(fd, F_ADD_SEALS,
			bytes[0] & (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)) ==
			0) {
		for (int kind = SEGMENT_POOL; kind <= SEGMENT_SCHEMA; kind++)
			attach(fd, (enum segment_kind)kind, 4096, kind & 1);
		if (segment_blob_read(fd, 1 << 12, &data, &length) == 0) {
			if (length > 1 << 12 || ((char *)data)[length])
				abort();
			free(data);
		}
	}
	(void)close(fd);
}
