/* The inside of the raw source: per-CPU sub-buffers, read in rounds. source_raw.c says when and
 * tells the router what it has to know; raw_read.c moves the bytes; proof.c tries the way before it
 * is relied on. */
#ifndef TRACEFAN_READER_RAW_H
#define TRACEFAN_READER_RAW_H

#include "reader/source.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Most sub-buffers of one CPU that one system call moves. */
#define RAW_CHAIN_MAX 16

struct raw;

struct raw_cpu {
	struct raw *raw;
	int fd;       /* per_cpu/cpuN/trace_pipe_raw, O_NONBLOCK */
	bool fired;   /* the kernel says so, and nobody has read since */
	bool offline; /* was never online since the instance was made: reads say ENODEV */
	bool ready;   /* there is something to read: the last look found it, or no read has said otherwise */
	bool stalled; /* a read failed or came short in this sweep: not asked again before the next
			 one */
	bool told;    /* an unexpected result has been logged */
	uint32_t taken; /* sub-buffers moved in this sweep */
	uint32_t want;  /* length of the next chain */
	uint32_t planned; /* sub-buffers that chains are to bring in this sweep */
	uint64_t begun;   /* with which time the last one that this sweep brought begins; 0: none yet */
	/* The chain in flight. Its reads are linked, so they finish in order. */
	uint32_t chain[RAW_CHAIN_MAX];
	uint32_t queued, done;
	bool called_back;
	struct loop_watch watch; /* armed while nothing happens */
};

struct raw {
	struct source base;
	const struct instance *instance;
	uint32_t cpu_count, subbuf_size;
	struct raw_cpu *cpus;
	struct pollfd *poll;
	uint32_t in_flight; /* reads of all CPUs */
	uint64_t until;     /* what begins later need not be read any more; UINT64_MAX: all has to be */
	uint64_t told;      /* up to which time all has to be read at least */
	uint32_t share;     /* sub-buffers of one CPU in one sweep, at most */
	/* What becomes of a sub-buffer: published, or counted by the proof. Takes the slot over. */
	void (*deliver)(struct raw *raw, uint32_t cpu, uint32_t slot, uint32_t length);
	char proof_text[48]; /* the proof's marker, and how many have come */
	uint64_t proof_count;

	/* Pacing; see source_raw.c. */
	bool loaded;  /* paced by the interval instead of woken by the kernel */
	bool blocked; /* a CPU had data, and the pool no slot for it */
	int error;    /* of a sweep; nobody knows what became of its reads, so there is no other */
	bool stopping;
	uint32_t quiet;    /* sweeps in a row that found nothing, while stopping */
	uint32_t moved;    /* sub-buffers of the last sweep */
	uint32_t unwoken;  /* bytes that were published since the router was last looked after */
	uint64_t woken;    /* when the last sweep that a wake-up caused began */
	uint64_t gap;      /* ns between wake-ups, a running mean */
	uint32_t calm;     /* loaded sweeps in a row that moved little */
	uint32_t patience; /* how many of them there have to be before the next try to wait */
	uint64_t swept;    /* T of the last sweep */
	uint64_t backoff;  /* ns until the next try while nothing moves for lack of slots */
	struct loop_watch hotplug; /* kernel's uevents: a CPU came online */
};

/* Looks at all CPUs with one poll(2) that doesn't wait: who has something to read? Whatever was
 * committed before the call and isn't seen here has been read already. */
void raw_look(struct raw *raw);

/* A sub-buffer from each CPU that woke the reader: it needs no look. */
void raw_take_fired(struct raw *raw);

/* Reads from each CPU that was seen ready, as far as its share and the pool's slots go. *ret_moved
 * is the number of sub-buffers. Leaves no read in flight. Returns 0 or -errno. */
int raw_round(struct raw *raw, uint32_t *ret_moved);

/* Starts a sweep by looks: every CPU has its share before it again. */
void raw_begin(struct raw *raw);

/* A sweep without a look: reads each CPU past `time`, that is, until a read finds nothing or brings a sub-buffer that
 * begins later; or past `told`, if what comes next is likely not full yet; unless its share is used up or no slot is
 * left before. Those that were not read past `told` stay `ready`.
 * Leaves no read in flight. Returns 0 or -errno. */
int raw_drain(struct raw *raw, uint64_t time, uint64_t told);

/* How long the next loaded sweep may wait, in ns: the interval; longer after one that moved much in the `span` since the
 * one before, at most twice that, and never until much of a CPU's buffer is full. */
uint64_t raw_pace(const struct raw *raw, uint64_t span);

/* The loop's callback for finished reads; `context` is the struct raw. */
void raw_read_done(void *context, uint64_t token, int result);

/* Tries the whole way with markers of its own in the session's instance, before and after waiting
 * is armed, and counts what arrives. Leaves the instance's buffers empty. Returns 0, -EPROTO
 * (something was missing, or too much) or another -errno. */
int proof_run(struct raw *raw);

#endif
