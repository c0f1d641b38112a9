#include "consumers/client/capture.h"

#include "consumers/client/connection.h"
#include "consumers/client/trace.h"
#include "shm/state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

/* ---- blobs ---- */

/* Sealed, so that nobody can change or cut it while it is read. */
static int map_blob(int fd, struct capture_blob *ret)
{
	const int want = F_SEAL_SHRINK | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat file;
	void *bytes;

	if (seals < 0 || fstat(fd, &file) < 0)
		return -errno;
	if ((seals & want) != want || file.st_size <= 0 || (uint64_t)file.st_size > SIZE_MAX)
		return -EPROTO;
	/* Private: older kernels take a shared mapping of what nobody can write for one that could be made writable. */
	bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	*ret = (struct capture_blob){ .bytes = bytes, .size = (size_t)file.st_size };
	return 0;
}

static void unmap_blob(struct capture_blob *blob)
{
	if (blob->bytes)
		(void)munmap(blob->bytes, blob->size);
	*blob = (struct capture_blob){ 0 };
}

void capture_release(struct capture *capture)
{
	unmap_blob(&capture->table);
	unmap_blob(&capture->details);
	free(capture->processes.places);
	free(capture->commands.places);
	*capture = (struct capture){ .stage = CAPTURE_NONE };
}

/* ---- whose details are whose ---- */

static int by_pid(const void *a, const void *b)
{
	const struct capture_place *left = a, *right = b;

	return (left->pid > right->pid) - (left->pid < right->pid);
}

static int add_place(struct capture_index *index, size_t *room, const struct state_record *record, size_t at)
{
	if (index->count == *room) {
		size_t more_room = *room ? 2 * *room : 256;
		struct capture_place *more = realloc(index->places, more_room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		index->places = more;
		*room = more_room;
	}
	index->places[index->count++] = (struct capture_place){ .pid = record->pid, .start = record->start, .at = at };
	return 0;
}

/* The records of one kind in a blob, all of which is walked through. */
static int make_index(const struct capture_blob *blob, uint16_t kind, struct capture_index *index, uint64_t *ret_left_out)
{
	const struct state_record *record = NULL;
	size_t at = 0, from = 0, room = 0;
	int rc;

	while ((rc = state_next(blob->bytes, blob->size, &at, &record)) == 1) {
		if (record->kind == kind && add_place(index, &room, record, from) < 0)
			return -ENOMEM;
		from = at;
	}
	if (rc < 0)
		return rc;
	*ret_left_out += ((const struct state_end *)(const void *)record)->left_out;
	if (index->count)
		qsort(index->places, index->count, sizeof(*index->places), by_pid);
	return 0;
}

static const struct capture_place *find_place(const struct capture_index *index, int32_t pid)
{
	const struct capture_place key = { .pid = pid };

	return index->count ? bsearch(&key, index->places, index->count, sizeof(key), by_pid) : NULL;
}

/* The table knows when a process began that it has seen begin; what was read, the tick before. */
static bool same(uint64_t start, uint64_t read_start)
{
	return read_start <= start || start == 0;
}

/* ---- asking ---- */

int capture_ask(struct tfan *tfan)
{
	struct control_capture request = { .what = tfan->capture.what };
	int rc;

	control_header_init(&request.header, CONTROL_CAPTURE, sizeof(request), ++tfan->cookie);
	rc = control_send(tfan->socket, &request, NULL, 0);
	if (rc < 0)
		return connection_failed(tfan, rc == -EPIPE ? -ECONNRESET : rc);
	tfan->capture.cookie = tfan->cookie;
	tfan->capture.stage = CAPTURE_ASKED;
	tfan->pending = true;
	return 0;
}

static int take_blobs(struct tfan *tfan, const struct control_message *reply)
{
	struct capture *capture = &tfan->capture;
	int rc = reply->fd_count == 2 ? map_blob(reply->fds[0], &capture->table) : -EPROTO;

	if (rc == 0)
		rc = map_blob(reply->fds[1], &capture->details);
	if (rc == 0)
		rc = make_index(&capture->table, STATE_PROCESS, &capture->processes, &capture->left_out);
	if (rc == 0)
		rc = make_index(&capture->details, STATE_COMMAND, &capture->commands, &capture->left_out);
	return rc;
}

static void read_clocks(struct tfan *tfan)
{
	const uint64_t before = trace_now(tfan);
	struct timespec real;

	(void)clock_gettime(CLOCK_REALTIME, &real);
	if (tfan->clock.count == 0)
		clock_model_add(&tfan->clock, before, (uint64_t)real.tv_sec * 1000000000U + (uint64_t)real.tv_nsec, trace_now(tfan) - before);
}

int capture_take(struct tfan *tfan, struct control_message *reply)
{
	const struct control_status *status = (const struct control_status *)reply->bytes;
	struct capture *capture = &tfan->capture;
	int rc = reply->header.cookie == capture->cookie && capture->stage == CAPTURE_ASKED ? 0 : -EPROTO;

	/* What was held back for it is so no more. */
	if (rc == 0)
		tfan->attach.flags &= ~(uint32_t)ATTACH_HOLD;
	if (rc == 0 && status->status != 0) {
		capture_release(capture);
		return failure_take(&tfan->failure, status->status, &status->failure);
	}
	if (rc == 0)
		rc = take_blobs(tfan, reply);
	/* The ring, in which the session's readings of the clocks stand, is not read before. */
	if (rc == 0)
		read_clocks(tfan);
	if (rc < 0) {
		capture_release(capture);
		return connection_failed(tfan, rc);
	}
	capture->stage = CAPTURE_GIVING;
	return 0;
}

/* ---- giving ---- */

/* Details of a process that isn't in the table, since it began later, are left out, and commands are told with their
 * processes. */
static bool is_given(const struct capture *capture, const struct state_record *record)
{
	const struct capture_place *process;

	if (!capture->in_details)
		return true;
	process = find_place(&capture->processes, record->pid);
	return record->kind != STATE_COMMAND && process && same(process->start, record->start);
}

/* Details have their process's. */
static const char *comm_of(const struct capture *capture, const struct state_record *record)
{
	const struct capture_place *place;

	if (record->kind == STATE_PROCESS)
		return ((const struct state_process *)(const void *)record)->comm;
	if (record->kind == STATE_THREAD)
		return ((const struct state_thread *)(const void *)record)->comm;
	place = find_place(&capture->processes, record->pid);
	return place ? ((const struct state_process *)(const void *)(capture->table.bytes + place->at))->comm : NULL;
}

static void give(struct tfan *tfan, const struct state_record *record)
{
	struct capture *capture = &tfan->capture;
	const struct capture_place *command = record->kind == STATE_PROCESS ? find_place(&capture->commands, record->pid) : NULL;
	const char *comm = comm_of(capture, record);

	capture->record = record;
	capture->command = NULL;
	if (command && same(record->start, command->start))
		capture->command = (const struct state_command *)(const void *)(capture->details.bytes + command->at);
	capture->header = (struct record_header){
		.size = sizeof(capture->header),
		.kind = RECORD_STATE,
		.flags = comm ? RECORD_COMM : 0,
		.cpu = RECORD_CPU_NONE,
		.time = record->time,
		.pid = record->tid,
	};
	if (comm)
		memcpy(capture->header.comm, comm, sizeof(capture->header.comm));
	tfan->event.record = &capture->header;
	tfan->event.payload_size = 0;
	tfan->event.head = (struct tfan_head){
		.time = record->time, .pid = record->tid, .cpu = -1, .kind = TFAN_STATE,
	};
}

static int give_next(struct tfan *tfan)
{
	struct capture *capture = &tfan->capture;
	const struct state_record *record = NULL;
	int rc;

	for (;;) {
		const struct capture_blob *blob = capture->in_details ? &capture->details : &capture->table;

		rc = state_next(blob->bytes, blob->size, &capture->at, &record);
		if (rc == 1 && !is_given(capture, record))
			continue;
		if (rc == 0 && !capture->in_details) {
			capture->in_details = true;
			capture->at = 0;
			continue;
		}
		if (rc < 0)
			return connection_failed(tfan, rc);
		break;
	}
	if (rc == 0 && capture->ended) {
		capture_release(capture);
		return CAPTURE_OVER;
	}
	capture->ended = rc == 0;
	give(tfan, record);
	return 1;
}

static bool look_at(int socket)
{
	struct pollfd fd = { .fd = socket, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

/* Looks for the answer. Returns 1 (it has come), 0 or -errno; -ECONNRESET alone without a failure set. */
static int await(struct tfan *tfan)
{
	struct control_message reply;
	int rc = look_at(tfan->socket) ? control_receive(tfan->socket, &reply) : -EAGAIN;

	if (rc == -EAGAIN || rc == -EINTR)
		return 0;
	if (rc == 0)
		return -ECONNRESET;
	if (rc == 1) {
		rc = control_check(&reply);
		if (rc == 0 && reply.header.type != (CONTROL_CAPTURE | CONTROL_REPLY))
			rc = -EPROTO;
		rc = rc ? connection_failed(tfan, rc) : capture_take(tfan, &reply);
		control_message_release(&reply);
		return rc ? rc : 1;
	}
	return rc == -ECONNRESET ? rc : connection_failed(tfan, rc);
}

int capture_step(struct tfan *tfan)
{
	int rc = tfan->capture.failed ? tfan->capture.failed : 1;

	tfan->capture.failed = 0;
	if (rc == 1 && tfan->capture.stage == CAPTURE_ASKED)
		rc = await(tfan);
	if (rc == 1 && tfan->capture.stage == CAPTURE_GIVING)
		return give_next(tfan);
	return rc == 1 ? CAPTURE_OVER : rc;
}
