#include "reader/recording_frame.h"

#include "base/checked.h"
#include "shm/recording_sum.h"

#include <errno.h>
#include <string.h>

/* More CPUs than any kernel is built for. */
#define CPUS_MAX 8192

static bool text_ends(const char *text, size_t size)
{
	return memchr(text, 0, size) != NULL;
}

/* Whether so much of the magic is right that it was one. */
static bool magic_nearly(uint64_t magic)
{
	unsigned int right = 0;

	for (uint64_t wrong = magic ^ RECORDING_MAGIC, i = 0; i < sizeof(magic); i++, wrong >>= 8)
		right += !(wrong & 0xff);
	return right > sizeof(magic) / 2;
}

/* What no tracefan writes. */
static const char *header_damage(const struct recording_header *header)
{
	if (header->sum && header->sum != recording_sum_header(header))
		return "the header is not what was written";
	if (header->source != SOURCE_RAW && header->source != SOURCE_TEXT)
		return "the header names no source";
	if (!header->subbuf_size || header->subbuf_size > POOL_SLOT_SIZE_MAX)
		return "the header's sub-buffer size is impossible";
	if (!header->cpu_count || header->cpu_count > CPUS_MAX)
		return "the header's number of CPUs is impossible";
	if (!text_ends(header->session, sizeof(header->session)) ||
		!text_ends(header->group, sizeof(header->group)) ||
		!text_ends(header->tag, sizeof(header->tag)))
		return "a name in the header has no end";
	return NULL;
}

const char *recording_header_refused(const struct recording_header *header, size_t size, bool *ret_damaged)
{
	*ret_damaged = false;
	if (header->magic == __builtin_bswap64(RECORDING_MAGIC))
		return "recorded on a machine of the other byte order; replay it on one of its own";
	*ret_damaged = magic_nearly(header->magic);
	if (!*ret_damaged)
		return "not a tracefan recording (--text replays an ftrace text log, --pages raw pages)";
	if (size < sizeof(*header))
		return "it ends within its header";
	if (header->magic != RECORDING_MAGIC)
		return "the mark at its beginning isn't whole";
	*ret_damaged = false;
	if (header->version < RECORDING_VERSION)
		return "recorded by an older tracefan";
	if (header->version != RECORDING_VERSION || header->incompatible)
		return "recorded by a newer tracefan";
	*ret_damaged = true;
	return header_damage(header);
}

bool recording_frame_known(const struct recording_frame *frame)
{
	return frame->kind >= FRAME_FACTS && frame->kind <= FRAME_END;
}

int recording_frame_check(const struct recording_frame *frame, uint64_t left, uint64_t *ret_size)
{
	if (left < sizeof(*frame))
		return -ENODATA;
	if (!frame->kind || frame->kind > FRAME_KIND_MAX || frame->flags & ~(FRAME_INCOMPATIBLE | FRAME_SUMMED))
		return -EBADMSG;
	if (!(frame->flags & FRAME_SUMMED) && recording_sum_of(frame))
		return -EBADMSG;
	if (!recording_frame_known(frame) && frame->flags & FRAME_INCOMPATIBLE)
		return -EOPNOTSUPP;
	if (frame->kind == FRAME_END && (frame->size || left > sizeof(*frame)))
		return -EBADMSG;
	if (frame->size > left - sizeof(*frame))
		return -ENODATA;
	/* The padding of the last frame may be missing without harm. */
	*ret_size = align_up(sizeof(*frame) + frame->size, RECORDING_ALIGN);
	if (*ret_size > left)
		*ret_size = left;
	return 0;
}

int recording_format_check(const struct recording_format *format, uint64_t size)
{
	if (size < sizeof(*format) || format->format_size > size - sizeof(*format))
		return -EBADMSG;
	if (format->kind < PROBE_TRACEPOINT || format->kind > PROBE_EVENT)
		return -EBADMSG;
	return text_ends(format->system, sizeof(format->system)) &&
			       text_ends(format->event, sizeof(format->event)) &&
			       text_ends(format->name, sizeof(format->name))
		       ? 0
		       : -EBADMSG;
}

int recording_entry_check(const struct pool_entry *entry, uint64_t size, uint32_t slot_size)
{
	if (size < sizeof(*entry))
		return -EBADMSG;
	if (entry->kind < POOL_DATA || entry->kind > POOL_CLEARED)
		return -EBADMSG;
	if (entry->kind != POOL_DATA)
		return 0;
	return entry->length <= slot_size && size - sizeof(*entry) <= entry->length ? 0 : -EBADMSG;
}

uint32_t recording_entry_stored(const struct pool_entry *entry, uint64_t size)
{
	return entry->kind == POOL_DATA ? (uint32_t)(size - sizeof(*entry)) : 0;
}

bool recording_entry_played(const struct pool_entry *entry)
{
	return entry->kind == POOL_DATA || entry->kind == POOL_BUSY || entry->kind == POOL_SWEEP ||
	       entry->kind == POOL_CLOCK || entry->kind == POOL_CLEARED;
}
