#include "router/recorder.h"

#include "base/checked.h"
#include "router/page.h"
#include "shm/recording_abi.h"
#include "shm/recording_sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RECORDER_HELD ((size_t)256 << 10)

void recorder_init(struct recorder *recorder, int fd)
{
	memset(recorder, 0, sizeof(*recorder));
	recorder->fd = fd;
}

/* ---- what does not get into the file ---- */

static void miss_entry(struct recorder *recorder, const struct pool_entry *entry, const void *data, size_t size)
{
	struct page_cursor cursor;
	uint64_t last = 0;

	if (entry->kind != POOL_DATA || recorder->unrecorded == LEDGER_UNKNOWN)
		return;
	if (!recorder->layout)
		recorder->unrecorded = LEDGER_UNKNOWN;
	else if (page_open(&cursor, recorder->layout, data, size) == 0)
		recorder->unrecorded += page_count(&cursor, &last);
}

/* The frames that are held, but for those that lie in the first `written` bytes. */
static void miss_held(struct recorder *recorder, size_t written)
{
	size_t at = recorder->skip;

	while (at < recorder->held_size) {
		const uint8_t *payload = recorder->held + at + sizeof(struct recording_frame);
		struct recording_frame frame;
		struct pool_entry entry;

		memcpy(&frame, recorder->held + at, sizeof(frame));
		at += sizeof(frame) + align_up(frame.size, RECORDING_ALIGN);
		if (frame.kind != FRAME_ENTRY || at <= written)
			continue;
		memcpy(&entry, payload, sizeof(entry));
		miss_entry(recorder, &entry, payload + sizeof(entry), frame.size - sizeof(entry));
	}
}

static void fail(struct recorder *recorder, int error, size_t written)
{
	recorder->error = error;
	miss_held(recorder, written);
	recorder->held_size = recorder->skip = 0;
}

/* ---- writing ---- */

void recorder_flush(struct recorder *recorder)
{
	size_t written = 0;

	while (recorder->begun && !recorder->error && written < recorder->held_size) {
		ssize_t n = write(recorder->fd, recorder->held + written, recorder->held_size - written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0)
			written += (size_t)n;
		else
			fail(recorder, n < 0 ? -errno : -ENOSPC, written);
	}
	if (recorder->begun)
		recorder->held_size = recorder->skip = 0;
}

void recorder_start(struct recorder *recorder)
{
	if (recorder->fd < 0 || recorder->begun)
		return;
	recorder->begun = true;
	recorder_flush(recorder);
}

/* Room for something that is then put whole. NULL: it can't be kept. */
static uint8_t *room(struct recorder *recorder, size_t size)
{
	uint8_t *bigger, *place;
	size_t wanted;

	if (recorder->begun && recorder->held_size + size > RECORDER_HELD)
		recorder_flush(recorder);
	if (recorder->error)
		return NULL;
	wanted = recorder->held_size + size;
	if (wanted > recorder->held_room) {
		wanted = wanted < RECORDER_HELD ? RECORDER_HELD : 2 * wanted;
		bigger = realloc(recorder->held, wanted);
		if (!bigger) {
			fail(recorder, -ENOMEM, 0);
			return NULL;
		}
		recorder->held = bigger;
		recorder->held_room = wanted;
	}
	place = recorder->held + recorder->held_size;
	recorder->held_size += size;
	return place;
}

static uint8_t *append(uint8_t *place, const void *bytes, size_t size)
{
	if (size)
		memcpy(place, bytes, size);
	return place + size;
}

/* False: it did not get in. */
static bool put_frame(struct recorder *recorder, uint32_t kind, const void *head, size_t head_size, const void *body, size_t body_size)
{
	struct recording_frame frame = { .kind = kind, .flags = FRAME_SUMMED, .size = head_size + body_size };
	size_t whole = align_up(frame.size, RECORDING_ALIGN);
	uint8_t *place, *payload;

	if (recorder->fd < 0)
		return true;
	place = room(recorder, sizeof(frame) + whole);
	if (!place)
		return false;
	payload = place + sizeof(frame);
	memset(append(append(payload, head, head_size), body, body_size), 0, whole - frame.size);
	recording_sum_set(&frame, recording_sum_frame(&frame, payload, whole));
	memcpy(place, &frame, sizeof(frame));
	return true;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	(void)clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void recorder_begin(struct recorder *recorder, const struct control_router_welcome *welcome, uint32_t slot_size)
{
	struct recording_header header = {
		.magic = RECORDING_MAGIC,
		.version = RECORDING_VERSION,
		.source = welcome->source,
		.subbuf_size = slot_size,
		.cpu_count = welcome->cpu_count,
		.flags = welcome->flags,
	};
	uint8_t *place;

	if (recorder->fd < 0)
		return;
	header.started_mono = clock_ns(CLOCK_MONOTONIC);
	header.started_real = clock_ns(CLOCK_REALTIME);
	memcpy(header.session, welcome->session, sizeof(header.session));
	memcpy(header.group, welcome->group, sizeof(header.group));
	memcpy(header.tag, welcome->tag, sizeof(header.tag));
	header.sum = recording_sum_header(&header);
	place = room(recorder, sizeof(header));
	if (!place)
		return;
	(void)append(place, &header, sizeof(header));
	recorder->skip = sizeof(header);
}

void recorder_blob(struct recorder *recorder, uint32_t frame_kind, const void *blob, size_t size)
{
	(void)put_frame(recorder, frame_kind, NULL, 0, blob, size);
}

/* Cut rather than refused: these texts were checked to fit when they came. */
static void fixed_text(char *array, size_t size, const char *text)
{
	memset(array, 0, size);
	memcpy(array, text, strnlen(text, size - 1));
}

void recorder_format(struct recorder *recorder, uint64_t probe_id, uint32_t kind, const char *system,
	const char *event, const char *name, const void *format, size_t size)
{
	struct recording_format head = { .probe_id = probe_id, .kind = kind, .format_size = (uint32_t)size };

	fixed_text(head.system, sizeof(head.system), system);
	fixed_text(head.event, sizeof(head.event), event);
	fixed_text(head.name, sizeof(head.name), name);
	(void)put_frame(recorder, FRAME_FORMAT, &head, sizeof(head), format, size);
}

void recorder_entry(struct recorder *recorder, const struct page_layout *layout, const struct pool_entry *entry, const void *data)
{
	size_t size = entry->kind == POOL_DATA ? entry->length : 0;

	if (recorder->fd < 0)
		return;
	recorder->layout = layout;
	if (entry->kind == POOL_FLUSH || entry->kind == POOL_ACCOUNT || entry->kind == POOL_END) {
		/* Somebody wants to know where they are: with the file, too. */
		recorder_flush(recorder);
		return;
	}
	/* Behind what was committed a sub-buffer holds what was there before. */
	if (size && layout)
		size = page_used(layout, data, size);
	if (!put_frame(recorder, FRAME_ENTRY, entry, sizeof(*entry), data, size))
		miss_entry(recorder, entry, data, size);
}

int recorder_finish(struct recorder *recorder)
{
	if (recorder->fd < 0)
		return 0;
	if (recorder->begun)
		(void)put_frame(recorder, FRAME_END, NULL, 0, NULL, 0);
	recorder_flush(recorder);
	free(recorder->held);
	recorder->held = NULL;
	if (close(recorder->fd) < 0 && !recorder->error)
		recorder->error = -errno;
	recorder->fd = -1;
	return recorder->error;
}
