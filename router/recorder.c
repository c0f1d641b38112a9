#include "router/recorder.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "shm/recording_abi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RECORDER_HELD (256U << 10)

int recorder_init(struct recorder *recorder, int fd)
{
	memset(recorder, 0, sizeof(*recorder));
	recorder->fd = fd;
	if (fd < 0)
		return 0;
	recorder->held = malloc(RECORDER_HELD);
	return recorder->held ? 0 : -ENOMEM;
}

static void write_out(struct recorder *recorder, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size && !recorder->error) {
		ssize_t n = write(recorder->fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			recorder->error = n < 0 ? -errno : -ENOSPC;
			break;
		}
		at += n;
		size -= (size_t)n;
	}
}

static void put(struct recorder *recorder, const void *bytes, size_t size)
{
	if (recorder->held_size + size > RECORDER_HELD) {
		write_out(recorder, recorder->held, recorder->held_size);
		recorder->held_size = 0;
	}
	if (size > RECORDER_HELD) {
		write_out(recorder, bytes, size);
		return;
	}
	if (size)
		memcpy(recorder->held + recorder->held_size, bytes, size);
	recorder->held_size += size;
}

static void put_frame(struct recorder *recorder, uint32_t kind, const void *head, size_t head_size, const void *body, size_t body_size)
{
	static const uint8_t zeros[RECORDING_ALIGN];
	struct recording_frame frame = { .kind = kind, .size = head_size + body_size };

	if (recorder->fd < 0)
		return;
	put(recorder, &frame, sizeof(frame));
	put(recorder, head, head_size);
	put(recorder, body, body_size);
	put(recorder, zeros, align_up(frame.size, RECORDING_ALIGN) - frame.size);
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

	if (recorder->fd < 0)
		return;
	header.started_mono = clock_ns(CLOCK_MONOTONIC);
	header.started_real = clock_ns(CLOCK_REALTIME);
	memcpy(header.session, welcome->session, sizeof(header.session));
	memcpy(header.group, welcome->group, sizeof(header.group));
	memcpy(header.tag, welcome->tag, sizeof(header.tag));
	put(recorder, &header, sizeof(header));
}

void recorder_blob(struct recorder *recorder, uint32_t frame_kind, const void *blob, size_t size)
{
	put_frame(recorder, frame_kind, NULL, 0, blob, size);
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
	put_frame(recorder, FRAME_FORMAT, &head, sizeof(head), format, size);
}

void recorder_entry(struct recorder *recorder, const struct pool_entry *entry, const void *data)
{
	if (entry->kind == POOL_FLUSH || entry->kind == POOL_ACCOUNT || entry->kind == POOL_END)
		return;
	put_frame(recorder, FRAME_ENTRY, entry, sizeof(*entry), data, entry->kind == POOL_DATA ? entry->length : 0);
}

int recorder_finish(struct recorder *recorder)
{
	if (recorder->fd < 0)
		return 0;
	put_frame(recorder, FRAME_END, NULL, 0, NULL, 0);
	write_out(recorder, recorder->held, recorder->held_size);
	free(recorder->held);
	recorder->held = NULL;
	recorder->fd = close_fd(recorder->fd);
	return recorder->error;
}
