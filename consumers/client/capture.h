/* The state of the host's processes: asked for, awaited while the ring is left alone, and given out record by record. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_CAPTURE_H
#define TRACEFAN_CONSUMERS_CLIENT_CAPTURE_H

#include "shm/control.h"
#include "shm/record_abi.h"
#include "shm/state_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tfan;

enum capture_stage {
	CAPTURE_NONE,
	CAPTURE_ASKED,  /* the answer has not come: the ring waits */
	CAPTURE_AGAIN,  /* the router is gone, the next one is asked */
	CAPTURE_GIVING, /* its records are given out */
};

/* A blob that was mapped. */
struct capture_blob {
	uint8_t *bytes; /* read-only; NULL: none */
	size_t size;
};

/* Where a process's record stands in a blob. */
struct capture_place {
	int32_t pid;
	uint64_t start;
	size_t at;
};

struct capture_index {
	struct capture_place *places; /* by pid */
	size_t count;
};

struct capture {
	enum capture_stage stage;
	uint32_t what;
	uint64_t cookie;
	struct capture_blob table, details;
	struct capture_index processes, commands;
	bool in_details, ended;
	int failed; /* -errno that tfan_next still has to tell */
	size_t at; /* the next record's place */
	uint64_t left_out;
	const struct state_record *record;    /* the one that was given last */
	const struct state_command *command;  /* of that process; NULL: not known */
	struct record_header header;          /* stands for it where an event has its record */
};

void capture_release(struct capture *capture);

/* Sends the request. Returns 0 or -errno with the failure set. */
int capture_ask(struct tfan *tfan);

/* The router's answer, which may come while another is awaited. Returns 0 or -errno with the failure set. */
int capture_take(struct tfan *tfan, struct control_message *reply);

/* Something is to be done about a capture before the ring is read. Returns 1 (a record for the caller), 0 (none now),
 * CAPTURE_OVER (there is nothing more to do) or -errno. */
#define CAPTURE_OVER 2
int capture_step(struct tfan *tfan);

#endif
