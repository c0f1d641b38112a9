#include "reader/socket_table.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "reader/proc_file.h"
#include "reader/proc_text.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

void socket_table_release(struct socket_table *table)
{
	free(table->places);
	free(table->texts);
	free(table->spaces);
	*table = (struct socket_table){ 0 };
}

static struct socket_entry *place(const struct socket_table *table, uint64_t inode)
{
	size_t i = (size_t)(inode * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (table->room - 1);

	while (table->places[i].inode && table->places[i].inode != inode)
		i = (i + 1) & (table->room - 1);
	return &table->places[i];
}

static bool grow(struct socket_table *table)
{
	struct socket_table bigger = { .room = table->room ? 2 * table->room : 1024 };

	bigger.places = calloc(bigger.room, sizeof(*bigger.places));
	if (!bigger.places)
		return false;
	for (size_t i = 0; i < table->room; i++) {
		if (table->places[i].inode)
			*place(&bigger, table->places[i].inode) = table->places[i];
	}
	free(table->places);
	table->places = bigger.places;
	table->room = bigger.room;
	return true;
}

const struct socket_entry *socket_table_find(const struct socket_table *table, uint64_t inode)
{
	const struct socket_entry *entry = table->room ? place(table, inode) : NULL;

	return entry && entry->inode ? entry : NULL;
}

static bool keep_text(struct socket_table *table, const char *text, size_t size, uint32_t *ret)
{
	if (table->texts_size + size > table->texts_room) {
		size_t room = 2 * table->texts_room + size + 4096;
		char *more = room > UINT32_MAX ? NULL : realloc(table->texts, room);

		if (!more)
			return false;
		table->texts = more;
		table->texts_room = room;
	}
	memcpy(table->texts + table->texts_size, text, size);
	*ret = (uint32_t)table->texts_size;
	table->texts_size += size;
	return true;
}

static void add(struct socket_table *table, const struct proc_socket *socket, const struct socket_entry *model)
{
	struct socket_entry *entry;

	if (!socket->inode || (table->count >= table->room / 2 && !grow(table)))
		return;
	entry = place(table, socket->inode);
	/* A name may hold a newline and what looks like another's line: of two lines for one socket, neither name is
	 * believed. */
	if (entry->inode) {
		entry->path_size = 0;
		return;
	}
	*entry = *model;
	entry->inode = socket->inode;
	if (socket->type)
		entry->type = socket->type;
	entry->state = socket->state;
	entry->local = socket->local;
	entry->remote = socket->remote;
	if (socket->path_size && keep_text(table, socket->path, socket->path_size, &entry->path))
		entry->path_size = (uint32_t)socket->path_size;
	table->count++;
}

static void read_one(struct socket_table *table, int process, const char *path, const struct socket_entry *model)
{
	CLEANUP_FREE char *text = NULL;
	struct proc_socket socket;
	size_t size, at = 0;

	if (proc_file_read(process, path, &text, &size) < 0)
		return;
	while (model->family == AF_UNIX ? proc_unix_next(text, size, &at, &socket) : proc_net_next(text, size, &at, &socket))
		add(table, &socket, model);
}

static bool read_before(struct socket_table *table, int process)
{
	struct stat space;
	uint64_t *more;

	if (fstatat(process, "ns/net", &space, 0) < 0)
		return true;
	for (size_t i = 0; i < table->space_count; i++) {
		if (table->spaces[i] == space.st_ino)
			return true;
	}
	more = realloc(table->spaces, (table->space_count + 1) * sizeof(*more));
	if (!more)
		return true;
	table->spaces = more;
	table->spaces[table->space_count++] = space.st_ino;
	return false;
}

void socket_table_read(struct socket_table *table, int process)
{
	static const struct {
		const char *path;
		struct socket_entry model;
	} files[] = {
		{ "net/tcp", { .family = AF_INET, .type = SOCK_STREAM, .protocol = IPPROTO_TCP } },
		{ "net/tcp6", { .family = AF_INET6, .type = SOCK_STREAM, .protocol = IPPROTO_TCP } },
		{ "net/udp", { .family = AF_INET, .type = SOCK_DGRAM, .protocol = IPPROTO_UDP } },
		{ "net/udp6", { .family = AF_INET6, .type = SOCK_DGRAM, .protocol = IPPROTO_UDP } },
		{ "net/udplite", { .family = AF_INET, .type = SOCK_DGRAM, .protocol = IPPROTO_UDPLITE } },
		{ "net/udplite6", { .family = AF_INET6, .type = SOCK_DGRAM, .protocol = IPPROTO_UDPLITE } },
		{ "net/raw", { .family = AF_INET, .type = SOCK_RAW } },
		{ "net/raw6", { .family = AF_INET6, .type = SOCK_RAW } },
		{ "net/unix", { .family = AF_UNIX } },
	};

	if (read_before(table, process))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		read_one(table, process, files[i].path, &files[i].model);
}
