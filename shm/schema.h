/* Schemas in memory, and the one place where a field is read out of a payload: the router's filters and
 * the consumer's library both come here. Pure: no system calls. */
#ifndef TRACEFAN_SHM_SCHEMA_H
#define TRACEFAN_SHM_SCHEMA_H

#include "shm/schema_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nothing in ftrace's text says where a string ends but what the kernel prints behind it, and a traced program chooses
 * what its strings hold. So that it can't choose that, too, the reader gives the probes of a text session one more
 * argument behind each string, a constant whose name begins so and ends with a random number that the program can't
 * know: "s=+0(%di):string tfc_0_NUMBER=\\0:u8". The router reads by it, and hides it (SCHEMA_HIDDEN). */
#define TEXT_CANARY "tfc_"

/* A view of the bytes of a schema segment, wherever they lie. Does not own them. */
struct schema {
	const struct schema_header *header;
	const struct schema_field *fields;
	const char *strings;
};

/* Checks that `size` bytes at `bytes` (8-byte aligned) are a whole, consistent schema: counts, every
 * string offset inside and the strings NUL-ended, kinds and sizes known. Does not check the segment's
 * magic. Returns 0 or -EBADMSG. */
int schema_view(const void *bytes, size_t size, struct schema *ret);

static inline const char *schema_string(const struct schema *schema, uint32_t offset)
{
	return schema->strings + offset;
}

/* The index of a field by name, or -1. */
int schema_find(const struct schema *schema, const char *name);

/* ---- building (router) ---- */
struct schema_builder {
	struct schema_header header;
	struct schema_field *fields;
	char *strings;
	size_t fields_room, strings_room;
};
void schema_builder_init(struct schema_builder *builder);
void schema_builder_release(struct schema_builder *builder);
/* Appends text to the strings; returns its offset, or 0 for the empty string. Negative -errno. */
int64_t schema_builder_string(struct schema_builder *builder, const char *text);
/* Appends a field whose name and type are string offsets already. Returns its index or -errno. */
int schema_builder_field(struct schema_builder *builder, const struct schema_field *field);
/* The finished bytes, for schema_view and segment_blob_create: owned by the caller (free). 0 or -errno. */
int schema_builder_finish(struct schema_builder *builder, void **ret_bytes, size_t *ret_size);

/* ---- reading a payload ---- */

/* An integer field's 64 bits: sign-extended for a signed field, zero-extended otherwise, in native order.
 * Returns 0, -EBADMSG (outside the payload), -ENODATA (a text line did not have it, or a probe could not read
 * it), -EINVAL (no integer). */
int schema_read_integer(const struct schema *schema, const struct schema_field *field, const void *payload,
	size_t size, uint64_t *ret);

/* The bytes of any field, in place: resolves __data_loc and __rel_loc. A string ends before its NUL or at
 * the field's end. A location word of 0 is an empty string. Returns as above. */
int schema_read_bytes(const struct schema *schema, const struct schema_field *field, const void *payload,
	size_t size, const uint8_t **ret, size_t *ret_size);

/* Element `i` of a SCHEMA_BYTES field of integers. -ERANGE past its end. */
int schema_read_element(const struct schema *schema, const struct schema_field *field, const void *payload,
	size_t size, size_t i, uint64_t *ret);

#endif
