/* State records: making a blob of them, and reading one. Pure but for memory. */
#ifndef TRACEFAN_SHM_STATE_H
#define TRACEFAN_SHM_STATE_H

#include "shm/state_abi.h"

#include <stddef.h>

/* ---- making ---- */

#define STATE_TEXTS 2

/* One record and the texts behind it. */
struct state_piece {
	void *record;  /* begins with struct state_record, whose size is filled in */
	uint32_t size; /* of the fixed part */
	struct {
		const void *bytes;
		uint32_t *ret_size; /* in the record: in, how long; out, how much of it stands there */
	} texts[STATE_TEXTS];
};

/* A blob that grows in memory and is moved to its file in large pieces. */
struct state_writer {
	int fd;
	uint8_t *buffer;
	uint64_t used, written;
	uint64_t left_out;
	int error; /* the first failure; later records are ignored */
};

/* Makes the memfd. Returns 0 or -errno. */
int state_writer_open(struct state_writer *writer, const char *name);
void state_writer_release(struct state_writer *writer);
/* Texts that make the record longer than STATE_RECORD_MAX are cut. */
void state_writer_add(struct state_writer *writer, const struct state_piece *piece);
/* A place to which the writer can go back. */
struct state_mark {
	uint64_t at, left_out;
};
struct state_mark state_writer_mark(const struct state_writer *writer);
void state_writer_undo(struct state_writer *writer, const struct state_mark *mark);
/* Writes STATE_END and seals. Returns the descriptor, owned by the caller, or -errno. */
int state_writer_finish(struct state_writer *writer, uint64_t began, uint64_t now);

/* ---- reading ---- */

/* Checks that at `at` of `size` bytes (8-byte aligned) a whole record begins, with its texts inside, and moves on.
 * Returns 1, 0 (STATE_END was the last: *ret is it the first time) or -EBADMSG (damaged, or cut off). A record of a kind
 * that isn't known is passed over. */
int state_next(const void *bytes, size_t size, size_t *at, const struct state_record **ret);

/* A record's text. */
static inline const char *state_text(const void *record, size_t fixed, uint32_t before)
{
	return (const char *)record + fixed + before;
}

#endif
