/* The record that tfan_next returned last. One per connection, in place in the ring. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_EVENT_H
#define TRACEFAN_CONSUMERS_CLIENT_EVENT_H

#include "consumers/client/trace.h"
#include "consumers/client/tracefan.h"
#include "shm/record_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tfan_event {
	struct tfan_head head; /* first: tfan_event_head relies on it */
	const struct record_header *record; /* the router can still write it: what counts was copied */
	uint32_t payload_size; /* checked against the record's size */
	bool direct;           /* the payload holds every field that is read by one load */
	/* Of the last event, which need not be this record: most events are of the same trace as the one before.
	 * NULL: there was none, or its trace is closed and buried. */
	struct trace_part *part;
	struct tfan *tfan;
	char comm[RECORD_COMM_SIZE + 1];
	uint32_t end_reason;
	char end_message[sizeof(((struct record_end *)0)->message)];
	/* RING_OVERWRITE: what stands for the records that were overwritten, made here. */
	struct {
		struct record_header header;
		struct record_lost lost;
	} overwritten;
	const struct record_header *pending; /* the record behind such a loss, or behind an event that has no stack */
	bool overtaken; /* RING_OVERWRITE: such a loss came behind an event, and is to be told next */
	/* Of an event that has RECORD_STACKED. */
	uint8_t *kept; /* owned: its record */
	size_t kept_room;
	struct record_stack stack;
	const uint64_t *frames;
};

static inline const uint8_t *event_payload(const struct tfan_event *event)
{
	return (const uint8_t *)(event->record + 1);
}

static inline const struct field *event_field(const struct tfan_event *event, size_t i)
{
	const struct trace_part *part = event->part;

	return event->head.kind == TFAN_EVENT && part && i < part->field_count ? &part->fields[i] : NULL;
}

/* The part of event_integer for fields that are not one load. */
int event_integer_checked(const struct tfan_event *event, const struct field *field, uint64_t *ret);

/* The value of a field that is read by one load. */
static inline uint64_t event_load(const uint8_t *payload, const struct field *field)
{
	uint64_t bits;

	memcpy(&bits, payload + field->window, sizeof(bits));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	bits <<= field->shift;
#endif
	/* Extends the sign where there is one. */
	return ((bits >> field->shift) ^ field->sign) - field->sign;
}

/* An integer field's 64 bits, signed fields extended. The whole payload was compared with direct_size when the
 * record was taken, so that nothing is left to be checked here. Returns as schema_read_integer. */
static inline int event_integer(const struct tfan_event *event, const struct field *field, uint64_t *ret)
{
	if (__builtin_expect(!event->direct || field->access == FIELD_CHECKED, 0))
		return event_integer_checked(event, field, ret);
	*ret = event_load(event_payload(event), field);
	return 0;
}

#endif
