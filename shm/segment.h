/* Making, sealing, handing out and attaching shared-memory segments (memfd). */
#ifndef TRACEFAN_SHM_SEGMENT_H
#define TRACEFAN_SHM_SEGMENT_H

#include "shm/segment_abi.h"

#include <stdbool.h>
#include <stddef.h>

/* A mapped segment. `base` is NULL and `fd` -1 when it isn't one. */
struct segment {
	void *base;
	size_t size; /* bytes mapped at base */
	int fd;
	bool writable;
};
#define SEGMENT_NONE { .base = NULL, .fd = -1 }

/* Who may write after the maker has mapped it. */
enum segment_sharing {
	SEGMENT_READ_ONLY, /* sealed against later writable mappings: only the maker writes */
	SEGMENT_WRITABLE,  /* the peer may map it writable; its size is sealed */
};

/* Makes a memfd of `size` bytes (a multiple of the page size), maps it writable, writes the header and
 * seals it: SHRINK, GROW and SEAL always, FUTURE_WRITE for SEGMENT_READ_ONLY. `name` is for
 * /proc/PID/maps. Returns 0 or -errno; *ret is written only on success and owned by the caller. */
int segment_create(const char *name, enum segment_kind kind, size_t size, enum segment_sharing sharing,
	struct segment *ret);

/* The same, with the bytes from `repeat` to the end mapped a second time right behind themselves, so that
 * what begins before the end of the segment can be read and written without a break (segment->size then
 * counts both). `repeat` is a multiple of the page size. */
int segment_create_repeated(const char *name, enum segment_kind kind, size_t size, size_t repeat,
	enum segment_sharing sharing, struct segment *ret);

/* Takes the maker's own right to write away from its mapping. Returns 0 or -errno. */
int segment_protect(struct segment *segment);

/* Maps a descriptor that a peer sent, after checking that it is a memfd sealed against shrinking, that
 * its size is a multiple of the page size between `min` and `max`, and its header. On success takes
 * ownership of fd; on failure the caller keeps it. Returns 0, -EINVAL (not a segment of this kind),
 * -EPROTO (version or incompatible feature), -EPERM (not sealed) or another -errno. */
int segment_attach(int fd, enum segment_kind kind, size_t min, size_t max, bool writable, struct segment *ret);
/* The same, mapped as segment_create_repeated does. */
int segment_attach_repeated(int fd, enum segment_kind kind, size_t min, size_t max, size_t repeat,
	bool writable, struct segment *ret);

/* Unmaps and closes; takes NULL and SEGMENT_NONE. Closes nothing when `fd` was set to -1 before. */
void segment_release(struct segment *segment);

/* Duplicates n (at most 8) descriptors for a peer, close-on-exec, all or none: ret_fds are owned by the
 * caller. Returns 0 or -errno. */
int segment_duplicate(const int *fds, int *ret_fds, unsigned int n);

/* Makes an unmapped, fully sealed memfd that holds `size` bytes of `data`: for blobs that travel by
 * message (format files, schemas). Returns the descriptor, owned by the caller, or -errno. */
int segment_blob_create(const char *name, const void *data, size_t size);

/* Reads such a blob, at most `max` bytes, into fresh memory with a NUL behind it; checks the seals
 * first. The descriptor stays the caller's. Returns 0, -EPERM (not sealed), -EFBIG (more than `max`) or
 * another -errno; *ret_data is the caller's to free. */
int segment_blob_read(int fd, size_t max, void **ret_data, size_t *ret_size);

#endif
