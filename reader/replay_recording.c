/* A recording that the router wrote: its entries again, in their order. */
#include "reader/replay.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "reader/recording_frame.h"
#include "shm/recording_abi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOB_MAX (64U << 20)

struct recording {
	struct replay replay;
	int fd;
	uint64_t size;
	uint64_t at; /* of the next frame */
};

/* The frame at `at`, which then moves behind it. Returns 1, 0 at the end, or -EBADMSG; a file that
 * was cut off is at its end where the last whole frame ends, and *ret_cut is set. */
static int next_frame(const struct recording *recording, uint64_t *at, struct recording_frame *ret,
	uint64_t *ret_payload, bool *ret_cut)
{
	uint64_t end;
	int r;

	*ret_cut = true;
	if (recording->size - *at < sizeof(*ret))
		return 0;
	r = replay_read(recording->fd, *at, ret, sizeof(*ret));
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	r = recording_frame_check(ret, recording->size - *at, &end);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	*ret_payload = *at + sizeof(*ret);
	*at += end;
	*ret_cut = false;
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

/* Everything but the entries, which are read as they are played. The facts come first in the file,
 * so the formats that are added to them are not lost. */
static int survey(struct recording *recording, bool *ret_cut)
{
	uint64_t at = sizeof(struct recording_header), payload = 0;
	struct recording_frame frame;
	bool facts = false;
	int r;

	while ((r = next_frame(recording, &at, &frame, &payload, ret_cut)) == 1) {
		r = 0;
		if (frame.kind == FRAME_FACTS && !facts)
			r = take_blob(recording, payload, frame.size, &recording->replay.facts);
		else if (frame.kind == FRAME_NAMES)
			r = take_blob(recording, payload, frame.size, &recording->replay.names);
		else if (frame.kind == FRAME_FORMAT)
			r = take_format(recording, payload, frame.size);
		facts |= frame.kind == FRAME_FACTS || frame.kind == FRAME_FORMAT;
		if (r < 0)
			return r;
	}
	return r;
}

static int next(struct replay *replay, struct replay_item *ret)
{
	struct recording *recording = (struct recording *)replay;
	struct recording_frame frame;
	uint64_t payload = 0;
	bool cut;
	int r;

	while ((r = next_frame(recording, &recording->at, &frame, &payload, &cut)) == 1) {
		if (frame.kind != FRAME_ENTRY)
			continue;
		if (frame.size < sizeof(ret->entry))
			return -EBADMSG;
		r = replay_read(recording->fd, payload, &ret->entry, sizeof(ret->entry));
		if (!r)
			r = recording_entry_check(&ret->entry, frame.size, replay->slot_size);
		if (r < 0)
			return r;
		if (!recording_entry_played(&ret->entry))
			continue;
		ret->fd = recording->fd;
		ret->offset = payload + sizeof(ret->entry);
		ret->stored = recording_entry_stored(&ret->entry, frame.size);
		return 1;
	}
	return r;
}

static void recording_close(struct replay *replay)
{
	struct recording *recording = (struct recording *)replay;

	(void)close_fd(recording->fd);
	free(recording);
}

static const struct replay_ops recording_ops = { .next = next, .close = recording_close };

static int read_header(
	struct recording *recording, const char *path, struct tracedir_problem *problem)
{
	struct recording_header header;
	const char *why;
	int r = replay_read(recording->fd, 0, &header, sizeof(header));

	if (r < 0)
		return replay_problem(
			problem, EXIT_USAGE, -EBADMSG, "%.250s: too short for a recording", path);
	why = recording_header_refused(&header);
	if (why)
		return replay_problem(problem, EXIT_USAGE, -EBADMSG, "%.250s: %s", path, why);
	recording->replay.source = header.source;
	recording->replay.slot_size = (uint32_t)align_up(header.subbuf_size, POOL_PAGE);
	recording->replay.cpu_count = header.cpu_count;
	memcpy(recording->replay.group, header.group, sizeof(recording->replay.group));
	memcpy(recording->replay.tag, header.tag, sizeof(recording->replay.tag));
	return 0;
}

int replay_recording_open(
	const char *path, struct replay **ret, struct tracedir_problem *ret_problem)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	bool cut = false;
	int r;

	if (!recording)
		return replay_problem(ret_problem, EXIT_FAILED, -ENOMEM, "%s", strerror(ENOMEM));
	recording->replay.ops = &recording_ops;
	recording->at = sizeof(struct recording_header);
	recording->fd = replay_open_file(path, &recording->size, ret_problem);
	r = recording->fd < 0 ? recording->fd : read_header(recording, path, ret_problem);
	if (!r) {
		r = survey(recording, &cut);
		if (r < 0)
			(void)replay_problem(ret_problem, EXIT_USAGE, r, "%.250s: %s", path,
				r == -EBADMSG ? "the recording is damaged" : strerror(-r));
	}
	if (r < 0) {
		replay_close(&recording->replay);
		return r;
	}
	if (cut)
		log_warning("%.250s was cut off; what stands before that is replayed", path);
	*ret = &recording->replay;
	return 0;
}
