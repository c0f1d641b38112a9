/* The sockets of every network namespace that was met, by their inodes: /proc/PID/fd tells no more of one. */
#ifndef TRACEFAN_READER_SOCKET_TABLE_H
#define TRACEFAN_READER_SOCKET_TABLE_H

#include "shm/state_abi.h"

#include <stddef.h>
#include <stdint.h>

struct socket_entry {
	uint64_t inode; /* 0: an empty place */
	uint16_t family, type, protocol, state;
	struct state_address local, remote;
	uint32_t path, path_size; /* in the texts */
};

struct socket_table {
	struct socket_entry *places; /* open addressing; a power of two */
	size_t room, count;
	char *texts;
	size_t texts_size, texts_room;
	uint64_t *spaces; /* the namespaces that were read, by their inodes */
	size_t space_count;
};

void socket_table_release(struct socket_table *table);
/* Reads the tables of a process's network namespace, unless they were read before. `process` is its folder in /proc.
 * What can't be read is not known; without memory, too. */
void socket_table_read(struct socket_table *table, int process);
const struct socket_entry *socket_table_find(const struct socket_table *table, uint64_t inode);

#endif
