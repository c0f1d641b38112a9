/* Typed fields out of the text of an event, by its schema. Pure.
 *
 * A text session gives each event a text schema: made from the schema of its format file where there is
 * one, else from nothing but the names that its lines show. The payload: a bitmap of the fields that the
 * line had (64-bit words), then each field at its offset: integers in 8 bytes, strings as a __data_loc
 * word with the bytes behind the fixed part. The last field is always "text": the body as printed. */
#ifndef TRACEFAN_ROUTER_TEXT_FIELDS_H
#define TRACEFAN_ROUTER_TEXT_FIELDS_H

#include "router/text.h"
#include "shm/schema.h"

#include <stddef.h>
#include <stdint.h>

/* Makes the text schema (SCHEMA_TEXT) of an event whose binary schema is `binary`; NULL: only "text". The
 * bytes are for schema_view, owned by the caller. Returns 0 or -errno. */
int text_schema_make(const struct schema *binary, const char *system, const char *event, void **ret_bytes,
	size_t *ret_size);

/* Encodes `body` for `schema` (a text schema) into at most `room` bytes at `payload`. Understood:
 * "name=value" and "name: value" pairs, quoted and bare values, decimal, hex ("ffffff9c" for a signed
 * 32-bit field is -100), negative, (fault), uprobe and kprobe bodies "(address) n=1 s=\"x\"", syscall
 * bodies "sys_openat(dfd: ffffff9c, ...)" and "sys_openat -> 0x3". Strings stand in quotes with nothing
 * escaped: the end is the last quote that the following fields allow; *ret_suspect is set when more than
 * one reading was possible. Returns 0, -ENOSPC or -EBADMSG (no reading at all: only "text" is set). */
int text_fields_encode(const struct schema *schema, const struct text_piece *body, void *payload, size_t room,
	size_t *ret_size, bool *ret_suspect);

#endif
