/* What a comparison looks at: a field of the payload, or what else is known of the event. */
#ifndef TRACEFAN_ROUTER_FILTER_FIELD_H
#define TRACEFAN_ROUTER_FILTER_FIELD_H

#include "router/filter.h"
#include "router/filter_ranges.h"

#include <string.h>

enum filter_trait {
	TRAIT_TERMINATED =
		1 << 0, /* a string that the kernel itself prints as one, so it ends with a NUL */
	TRAIT_KERNEL = 1 << 1, /* the kernel's filters take it for a string or a number, as we do */
};

/* The part of a schema that programs need for as long as they live: header, fields and their names.
 * One copy is shared by the comparisons of a program. */
struct filter_schema {
	uint32_t refs;
	struct schema_header header;
	struct schema view;
	struct schema_field *fields;
	char *names;
	uint8_t *traits; /* enum filter_trait, per field */
};

int filter_schema_create(const struct schema *schema, struct filter_schema **ret);
struct filter_schema *filter_schema_ref(struct filter_schema *schema);
void filter_schema_release(struct filter_schema *schema);

enum filter_source {
	FROM_PAYLOAD,
	FROM_TID,
	FROM_TGID,
	FROM_CPU,
	FROM_COMM,
	FROM_UID,
	FROM_CGROUP,
	FROM_GID,
	FROM_EXE,
	FROM_PROBE, /* known when the filter is compiled: no comparison ever holds it */
};

enum filter_type {
	TYPE_NUMBER,
	TYPE_STRING,
	TYPE_CPUMASK,
	TYPE_NOTHING, /* nothing that can be compared */
};

struct filter_field {
	enum filter_source source;
	enum filter_type type;
	uint32_t index; /* FROM_PAYLOAD: in the schema */
	uint32_t size;  /* TYPE_NUMBER: bytes; a string of fixed room: its room, else 0 */
	bool is_signed;
	bool terminated; /* TRAIT_TERMINATED */
	bool direct;     /* at a fixed place, in this machine's byte order, always there */
	uint32_t offset; /* direct */
	struct filter_schema
		*schema;  /* FROM_PAYLOAD: a reference of the comparison that holds the field */
	const char *name; /* lives as long as schema, or for ever */
	const char *kernel_name; /* the same thing in the kernel's filters, NULL: it has none */
};

/* Finds a field as the kernel does: the event's own before the general ones (CPU, COMM, ...) before
 * the common ones. The result borrows `schema`. Returns 0 or -ENOENT. */
int filter_field_find(struct filter_schema *schema, const struct filter_environment *environment,
	const char *name, size_t size, struct filter_field *ret);
/* The names that a filter may use, one by one, for messages; NULL at the end. */
const char *filter_field_name(const struct filter_schema *schema, size_t i);

bool filter_field_equal(const struct filter_field *a, const struct filter_field *b);
/* What the event has to say for it (enum filter_fact), 0 for what stands in the payload. */
uint32_t filter_field_fact(const struct filter_field *field);

/* The order keys of the least and the greatest value of a TYPE_NUMBER field. */
struct filter_range filter_field_domain(const struct filter_field *field);
/* The order key (see filter_ranges.h) of a value: 64 bits, sign-extended for a signed field. */
static inline uint64_t filter_field_key(const struct filter_field *field, uint64_t value)
{
	return field->is_signed ? value ^ (UINT64_C(1) << 63) : value;
}

/* A number of 1, 2, 4 or 8 bytes in this machine's order, as 64 bits. */
static inline uint64_t filter_load(const uint8_t *from, uint32_t size, bool is_signed)
{
	uint16_t v2;
	uint32_t v4;
	uint64_t v8;

	switch (size) {
	case 1:
		return is_signed ? (uint64_t)(int8_t)*from : *from;
	case 2:
		memcpy(&v2, from, sizeof(v2));
		return is_signed ? (uint64_t)(int16_t)v2 : v2;
	case 4:
		memcpy(&v4, from, sizeof(v4));
		return is_signed ? (uint64_t)(int32_t)v4 : v4;
	default:
		memcpy(&v8, from, sizeof(v8));
		return v8;
	}
}

/* These return whether the event has it. */

/* For a TYPE_NUMBER field that isn't direct. */
bool filter_field_other_number(
	const struct filter_field *field, const struct filter_event *event, uint64_t *ret);
static inline bool filter_field_number(
	const struct filter_field *field, const struct filter_event *event, uint64_t *ret)
{
	if (!field->direct)
		return filter_field_other_number(field, event, ret);
	if ((uint64_t)field->offset + field->size > event->size)
		return false;
	*ret = filter_load(
		(const uint8_t *)event->payload + field->offset, field->size, field->is_signed);
	return true;
}
bool filter_field_text(const struct filter_field *field, const struct filter_event *event,
	const char **ret, size_t *ret_size);
bool filter_field_bytes(const struct filter_field *field, const struct filter_event *event,
	const uint8_t **ret, size_t *ret_size);
/* Whether bit `cpu` is set in a TYPE_CPUMASK field, whose bytes filter_field_bytes has found. */
bool filter_field_bit(const struct filter_field *field, const uint8_t *bytes, size_t cpu);

#endif
