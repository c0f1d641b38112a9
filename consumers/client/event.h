/* The record that tfan_next returned last. One per connection, in place in the ring. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_EVENT_H
#define TRACEFAN_CONSUMERS_CLIENT_EVENT_H

#include "consumers/client/trace.h"
#include "consumers/client/tracefan.h"
#include "shm/record_abi.h"

struct tfan_event {
	const struct record_header *record; /* the router can still write it: what counts was copied below */
	const uint8_t *payload;
	uint32_t payload_size; /* checked against the record's size */
	uint64_t time;
	uint8_t kind;          /* enum tfan_kind */
	bool direct;           /* the payload holds every field that is read by one load */
	const struct trace_part *part; /* events only */
	struct tfan *tfan;
	char comm[RECORD_COMM_SIZE + 1];
	uint32_t end_reason;
	char end_message[sizeof(((struct record_end *)0)->message)];
	/* RING_OVERWRITE: what stands for the records that were overwritten, made here. */
	struct {
		struct record_header header;
		struct record_lost lost;
	} overwritten;
	const struct record_header *pending; /* the record behind such a loss */
};

#endif
