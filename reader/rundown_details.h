/* The details of a rundown: command lines, mappings, open files and sockets. */
#ifndef TRACEFAN_READER_RUNDOWN_DETAILS_H
#define TRACEFAN_READER_RUNDOWN_DETAILS_H

#include "reader/socket_table.h"
#include "shm/state.h"

#include <stdbool.h>
#include <stdint.h>

#define RUNDOWN_IDS 1024

/* A build id that was read before: most processes share their libraries. */
struct rundown_build_id {
	uint64_t device, inode; /* of the file; inode 0: an empty place */
	uint32_t id_size;
	uint8_t id[STATE_BUILD_ID_MAX];
};

struct rundown_details {
	uint32_t what; /* enum state_what; 0: none */
	struct state_writer writer;
	struct state_mark mark; /* before the last process */
	struct socket_table sockets;
	struct rundown_build_id *ids; /* RUNDOWN_IDS places, the newest instead of an older one */
};

struct rundown_subject {
	int folder; /* of the process in /proc */
	int32_t pid, parent;
	uint64_t start, time;
	bool is_kernel;
};

int rundown_details_open(struct rundown_details *details, uint32_t what);
void rundown_details_release(struct rundown_details *details);
void rundown_details_add(struct rundown_details *details, const struct rundown_subject *subject);
/* Takes the last process's back. */
void rundown_details_undo(struct rundown_details *details);
/* The blob, or -errno. */
int rundown_details_finish(struct rundown_details *details, uint64_t began);

#endif
