#include "reader/legacy.h"

#include "base/cleanup.h"
#include "reader/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEGACY_MAGIC UINT64_C(0x3174706b6e616674) /* "tfankpt1" */

struct legacy_head {
	uint64_t magic;
	uint32_t probe_size; /* of struct probe: another one is another build's */
	uint32_t reserved;
	struct legacy_session session;
	struct legacy_clearing clearing;
};

struct legacy_record {
	uint64_t id; /* 0: the place is free */
	struct probe probe;
};

static off_t record_at(uint32_t place)
{
	return (off_t)(sizeof(struct legacy_head) + (size_t)place * sizeof(struct legacy_record));
}

static int write_all(int fd, const void *data, size_t size, off_t at)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pwrite(fd, (const char *)data + done, size - done, at + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

/* Returns 1, 0 (the file ends before) or -errno. */
static int read_all(int fd, void *data, size_t size, off_t at)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)data + done, size - done, at + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		done += (size_t)n;
	}
	return 1;
}

int legacy_make(int folder, const struct legacy_session *session, struct legacy *ret)
{
	const struct legacy_head head = { .magic = LEGACY_MAGIC,
		.probe_size = sizeof(struct probe),
		.session = *session };
	CLEANUP_CLOSE int fd = openat(folder, LEGACY_NAME,
		O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = write_all(fd, &head, sizeof(head), 0);
	if (r < 0)
		return r;
	*ret = (struct legacy){ .fd = TAKE_FD(fd) };
	return 0;
}

int legacy_take(int folder, struct legacy_session *ret_session, struct legacy *ret)
{
	CLEANUP_CLOSE int fd = openat(folder, LEGACY_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct legacy_head head;
	int r;

	if (fd < 0)
		return -errno;
	r = read_all(fd, &head, sizeof(head), 0);
	if (r < 0)
		return r;
	if (r == 0 || head.magic != LEGACY_MAGIC || head.probe_size != sizeof(struct probe) ||
		!memchr(head.session.tag, 0, sizeof(head.session.tag)))
		return -EBADMSG;
	*ret_session = head.session;
	*ret = (struct legacy){ .fd = TAKE_FD(fd) };
	return 0;
}

int legacy_set_clearing(struct legacy *legacy, const struct legacy_clearing *clearing)
{
	if (legacy->fd < 0)
		return 0;
	return write_all(legacy->fd, clearing, sizeof(*clearing), offsetof(struct legacy_head, clearing));
}

int legacy_clearing(const struct legacy *legacy, struct legacy_clearing *ret)
{
	int r = read_all(legacy->fd, ret, sizeof(*ret), offsetof(struct legacy_head, clearing));

	return r == 0 ? -EBADMSG : r < 0 ? r : 0;
}

void legacy_close(struct legacy *legacy)
{
	legacy->fd = close_fd(legacy->fd);
	free(legacy->used);
	*legacy = (struct legacy)LEGACY_NONE;
}

static int grow(struct legacy *legacy, uint32_t count)
{
	bool *used;

	if (count <= legacy->count)
		return 0;
	used = realloc(legacy->used, count * sizeof(*used));
	if (!used)
		return -ENOMEM;
	memset(used + legacy->count, 0, (count - legacy->count) * sizeof(*used));
	legacy->used = used;
	legacy->count = count;
	return 0;
}

int legacy_add(struct legacy *legacy, struct probe *probe)
{
	struct legacy_record record = { .id = 0 };
	uint32_t place = 0;
	int r;

	if (legacy->fd < 0)
		return 0;
	while (place < legacy->count && legacy->used[place])
		place++;
	r = grow(legacy, place + 1);
	if (r < 0)
		return r;
	probe->place = place;
	record.probe = *probe;
	record.probe.next = NULL;
	r = write_all(legacy->fd, &record, sizeof(record), record_at(place));
	if (r == 0)
		r = write_all(legacy->fd, &probe->id, sizeof(probe->id), record_at(place));
	if (r == 0)
		legacy->used[place] = true;
	return r;
}

void legacy_drop(struct legacy *legacy, const struct probe *probe)
{
	const uint64_t none = 0;

	if (legacy->fd < 0)
		return;
	(void)write_all(legacy->fd, &none, sizeof(none), record_at(probe->place));
	legacy->used[probe->place] = false;
}

int legacy_next(struct legacy *legacy, uint32_t *at, struct probe *ret)
{
	struct legacy_record record;
	int r;

	while ((r = read_all(legacy->fd, &record, sizeof(record), record_at(*at))) == 1) {
		const uint32_t place = (*at)++;

		r = grow(legacy, place + 1);
		if (r < 0)
			return r;
		if (!record.id || record.id != record.probe.id)
			continue;
		legacy->used[place] = true;
		*ret = record.probe;
		ret->next = NULL;
		ret->place = place;
		return 1;
	}
	return r;
}
