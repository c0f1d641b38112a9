/* A recording of a session: layout only. The router writes it, the reader replays it.
 *
 *   0                        256
 *   +------------------------+-------+---------+-----+-------+---------+-----+- - -
 *   | struct recording_header| frame | payload | pad | frame | payload | pad |
 *   +------------------------+-------+---------+-----+-------+---------+-----+- - -
 *
 * Every frame starts at a multiple of 8. The order of frames is the order in which the router learned of
 * them: FACTS and NAMES once, in front of all; a FORMAT before the first ENTRY that can hold its events;
 * ENTRY frames as they came out of the filled ring; END last. A file that ends without an END frame was
 * cut off: what stands before the first incomplete frame is good. A frame of a kind that its reader doesn't know
 * is skipped, unless it bears FRAME_INCOMPATIBLE. A kind of 0 or beyond FRAME_KIND_MAX, another flag, and anything
 * behind END are no later version's: the file is damaged there.
 *
 * In the byte order of the machine that recorded; `magic` shows it. The sub-buffers inside the ENTRY
 * frames are the traced kernel's bytes as they were, up to the end of what it had committed. */
#ifndef TRACEFAN_SHM_RECORDING_ABI_H
#define TRACEFAN_SHM_RECORDING_ABI_H

#include "shm/control_abi.h"
#include "shm/pool_abi.h"

#include <stdint.h>

#define RECORDING_MAGIC   UINT64_C(0x314345524e414654) /* "TFANREC1" in memory, little-endian */
#define RECORDING_VERSION 2
#define RECORDING_ALIGN   8
#define FRAME_KIND_MAX    0xffff

struct recording_header {
	uint64_t magic;
	uint16_t version;
	uint16_t reserved0;
	uint32_t source;       /* enum control_source */
	uint32_t subbuf_size;  /* no ENTRY holds more bytes than this */
	uint32_t cpu_count;
	uint32_t flags;        /* enum control_session_flag of the recorded session */
	uint32_t reserved1;
	uint64_t incompatible; /* feature bits: a reader refuses those that it doesn't know */
	uint64_t started_mono; /* ns, CLOCK_MONOTONIC, when the recording began */
	uint64_t started_real; /* ns since the epoch, at the same moment */
	char session[CONTROL_NAME_MAX];
	char group[CONTROL_NAME_MAX]; /* as in struct control_router_welcome */
	char tag[CONTROL_NAME_MAX];   /* as in struct control_router_welcome: the text parser needs it */
	uint64_t sum; /* of the header (shm/recording_sum.h); 0: none */
};
_Static_assert(sizeof(struct recording_header) == 256, "recording header");

enum recording_frame_kind {
	FRAME_FACTS = 1,  /* the facts blob */
	FRAME_NAMES = 2,  /* the names blob: an array of struct control_task_name */
	FRAME_FORMAT = 3, /* struct recording_format, then the format file's bytes */
	FRAME_ENTRY = 4,  /* struct pool_entry, then bytes if its kind is POOL_DATA: the first of its `length`, all that mean
			   * something; the rest are to be read as zeros. `slot` means nothing.
			   * POOL_FLUSH, POOL_ACCOUNT and POOL_END need not be recorded: a replay leaves them
			   * out, since nobody of the new session asked for them */
	FRAME_END = 5,    /* nothing: the recording is whole */
};

enum recording_frame_flag {
	FRAME_INCOMPATIBLE = 1 << 0, /* who doesn't know the kind must refuse the file */
	FRAME_SUMMED = 1 << 1,       /* `sum` is one; otherwise it is 0 */
};

struct recording_frame {
	uint32_t kind;  /* enum recording_frame_kind */
	uint8_t flags;  /* enum recording_frame_flag */
	uint8_t sum[3]; /* of head, payload and padding (shm/recording_sum.h) */
	uint64_t size;  /* of the payload that follows, without the padding to RECORDING_ALIGN */
};
_Static_assert(sizeof(struct recording_frame) == 16, "recording frame");

/* One probe of the recorded session. Two consumers' names for one probe are two frames. */
struct recording_format {
	uint64_t probe_id;
	uint32_t kind; /* enum control_probe_kind */
	uint32_t format_size;
	char system[CONTROL_NAME_MAX]; /* the event's name in tracefs */
	char event[CONTROL_NAME_MAX];
	char name[CONTROL_NAME_MAX];   /* the consumer's name for it */
};
_Static_assert(sizeof(struct recording_format) == 208, "recording format");

#endif
