/* A recording that the router wrote: its entries again, in their order. */
#include "reader/replay.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "reader/recording_frame.h"
#include "shm/recording_abi.h"
#include "shm/recording_sum.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLOB_MAX (64U << 20)

struct recording {
	struct replay replay;
	int fd;
	uint64_t size;
	uint64_t at; /* of the next frame */
	uint64_t end; /* where what can be replayed ends */
	/* Frames of unknown kinds, and where the first of them is. */
	uint64_t unknown, unknown_at;
	uint8_t *bytes; /* of the frame that is looked at; gone once all were */
	size_t room;
};

/* The frame at `at`, which then moves behind it. Returns 1, 0 at the end, -ENODATA where the file was cut off, or another
 * -errno of recording_frame_check(). */
static int next_frame(const struct recording *recording, uint64_t *at, struct recording_frame *ret, uint64_t *ret_payload)
{
	uint64_t left = recording->size - *at, end = 0;
	int r = left < sizeof(*ret) ? -ENODATA : replay_read(recording->fd, *at, ret, sizeof(*ret));

	if (!r)
		r = recording_frame_check(ret, left, &end);
	if (r < 0)
		return r;
	*ret_payload = *at + sizeof(*ret);
	*at += end;
	return ret->kind == FRAME_END ? 0 : 1;
}

static int take_blob(
	const struct recording *recording, uint64_t offset, uint64_t size, struct facts *facts)
{
	CLEANUP_FREE char *bytes = NULL;
	int r;

	if (size > BLOB_MAX)
		return -EFBIG;
	bytes = malloc(size + 1);
	if (!bytes)
		return -ENOMEM;
	r = replay_read(recording->fd, offset, bytes, size);
	if (r < 0)
		return r;
	/* A later blob of the same kind has the later word. */
	facts_release(facts);
	facts_append(facts, bytes, size);
	return facts->error;
}

static int take_format(struct recording *recording, uint64_t offset, uint64_t size)
{
	struct replay_format format = { 0 };
	struct recording_format head;
	CLEANUP_FREE char *bytes = NULL;
	int r;

	if (size < sizeof(head))
		return -EBADMSG;
	r = replay_read(recording->fd, offset, &head, sizeof(head));
	if (!r)
		r = recording_format_check(&head, size);
	if (r < 0)
		return r;
	bytes = malloc(head.format_size + 1);
	if (!bytes)
		return -ENOMEM;
	r = replay_read(recording->fd, offset + sizeof(head), bytes, head.format_size);
	if (r < 0)
		return r;
	format.kind = head.kind;
	memcpy(format.system, head.system, sizeof(format.system));
	memcpy(format.event, head.event, sizeof(format.event));
	memcpy(format.name, head.name, sizeof(head.name));
	format.format = bytes;
	format.format_size = head.format_size;
	return replay_add_format(&recording->replay, &format);
}

static int take_entry(const struct recording *recording, uint64_t offset, uint64_t size, struct pool_entry *ret)
{
	int r = size < sizeof(*ret) ? -EBADMSG : replay_read(recording->fd, offset, ret, sizeof(*ret));

	return r < 0 ? r : recording_entry_check(ret, size, recording->replay.slot_size);
}

/* The facts come first in the file, so the formats that are added to them are not lost. */
static int take_frame(struct recording *recording, const struct recording_frame *frame, uint64_t payload)
{
	struct replay *replay = &recording->replay;
	struct pool_entry entry;

	switch (frame->kind) {
	case FRAME_FACTS:
		return replay->facts.size ? 0 : take_blob(recording, payload, frame->size, &replay->facts);
	case FRAME_NAMES:
		return take_blob(recording, payload, frame->size, &replay->names);
	case FRAME_FORMAT:
		return take_format(recording, payload, frame->size);
	case FRAME_ENTRY:
		return take_entry(recording, payload, frame->size, &entry);
	default:
		if (!recording->unknown++)
			recording->unknown_at = payload - sizeof(*frame);
		return 0;
	}
}

/* Whether the frame up to `end` is as it was written. */
static int check_sum(struct recording *recording, const struct recording_frame *frame, uint64_t payload, uint64_t end)
{
	size_t size = (size_t)(end - payload);
	uint8_t *more;
	int r;

	if (!(frame->flags & FRAME_SUMMED))
		return 0;
	if (size > BLOB_MAX)
		return -EFBIG;
	if (size > recording->room) {
		more = realloc(recording->bytes, size);
		if (!more)
			return -ENOMEM;
		recording->bytes = more;
		recording->room = size;
	}
	r = replay_read(recording->fd, payload, recording->bytes, size);
	if (r < 0)
		return r;
	return recording_sum_frame(frame, recording->bytes, size) == recording_sum_of(frame) ? 0 : -EILSEQ;
}

/* Looks at every frame, and takes all but the entries, which are read as they are played. Returns 0; or what is wrong
 * from recording->end on, as next_frame(). */
static int survey(struct recording *recording)
{
	uint64_t at = sizeof(struct recording_header), payload = 0;
	struct recording_frame frame;
	bool last;
	int r;

	do {
		recording->end = at;
		r = next_frame(recording, &at, &frame, &payload);
		last = r == 0;
		if (r >= 0)
			r = check_sum(recording, &frame, payload, at);
		if (r == 0 && !last)
			r = take_frame(recording, &frame, payload);
	} while (r == 0 && !last);
	return r;
}

static int next(struct replay *replay, struct replay_item *ret)
{
	struct recording *recording = (struct recording *)replay;
	struct recording_frame frame;
	uint64_t payload = 0;

	while (recording->at < recording->end) {
		int r = next_frame(recording, &recording->at, &frame, &payload);

		if (r <= 0)
			return r;
		if (frame.kind != FRAME_ENTRY)
			continue;
		r = take_entry(recording, payload, frame.size, &ret->entry);
		if (r < 0)
			return r;
		if (!recording_entry_played(&ret->entry))
			continue;
		ret->fd = recording->fd;
		ret->offset = payload + sizeof(ret->entry);
		ret->stored = recording_entry_stored(&ret->entry, frame.size);
		return 1;
	}
	return 0;
}

static void recording_close(struct replay *replay)
{
	struct recording *recording = (struct recording *)replay;

	(void)close_fd(recording->fd);
	free(recording);
}

static const struct replay_ops recording_ops = { .next = next, .close = recording_close };

/* A file that is something else was named by mistake; a recording that is damaged is no fault of who named it. */
static int read_header(
	struct recording *recording, const char *path, struct tracedir_problem *problem)
{
	struct recording_header header = { 0 };
	size_t size = recording->size < sizeof(header) ? (size_t)recording->size : sizeof(header);
	int r = replay_read(recording->fd, 0, &header, size);
	bool damaged = false;
	const char *why;

	if (r < 0)
		return replay_problem(problem, EXIT_FAILED, r, "%.250s: %s", path, strerror(-r));
	if (!size)
		return replay_problem(problem, EXIT_FAILED, -ENODATA, "%.250s: empty: nothing was recorded in it", path);
	why = recording_header_refused(&header, size, &damaged);
	if (why && damaged)
		return replay_problem(problem, EXIT_FAILED, -EBADMSG, "%.250s: the recording is damaged at offset %zu: %s",
			path, size < sizeof(header) ? size : 0, why);
	if (why)
		return replay_problem(problem, EXIT_USAGE, -EBADMSG, "%.250s: %s", path, why);
	recording->replay.source = header.source;
	recording->replay.slot_size = (uint32_t)align_up(header.subbuf_size, POOL_PAGE);
	recording->replay.cpu_count = header.cpu_count;
	memcpy(recording->replay.group, header.group, sizeof(recording->replay.group));
	memcpy(recording->replay.tag, header.tag, sizeof(recording->replay.tag));
	return 0;
}

static const char *damage(int error)
{
	switch (error) {
	case -ENODATA:
		return "it was cut off, or a size there is wrong";
	case -EOPNOTSUPP:
		return "only a newer tracefan can read what is there";
	case -EILSEQ:
		return "what is there is not what was written";
	case -EBADMSG:
		return "what is there is no part of a recording";
	default:
		return strerror(-error);
	}
}

static int read_frames(struct recording *recording, const char *path)
{
	int r = survey(recording);

	free(recording->bytes);
	recording->bytes = NULL;
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		recording->replay.damaged = true;
		log_error("%.250s: the recording is damaged at offset %" PRIu64 " of %" PRIu64
			  ": %s; what stands before that is replayed",
			path, recording->end, recording->size, damage(r));
	}
	if (recording->unknown)
		log_warning("%.250s: %" PRIu64 " parts, the first at offset %" PRIu64
			    ", are of kinds that this tracefan doesn't know, and are left out",
			path, recording->unknown, recording->unknown_at);
	return 0;
}

int replay_recording_open(
	const char *path, struct replay **ret, struct tracedir_problem *ret_problem)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	int r;

	if (!recording)
		return replay_problem(ret_problem, EXIT_FAILED, -ENOMEM, "%s", strerror(ENOMEM));
	recording->replay.ops = &recording_ops;
	recording->at = sizeof(struct recording_header);
	recording->fd = replay_open_file(path, &recording->size, ret_problem);
	r = recording->fd < 0 ? recording->fd : read_header(recording, path, ret_problem);
	if (!r) {
		r = read_frames(recording, path);
		if (r < 0)
			(void)replay_problem(ret_problem, EXIT_FAILED, r, "%.250s: %s", path, strerror(-r));
	}
	if (r < 0) {
		replay_close(&recording->replay);
		return r;
	}
	*ret = &recording->replay;
	return 0;
}
