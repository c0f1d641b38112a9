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
 * bytes are for schema_view, owned by the caller. Its print_format is not the kernel's but the template of
 * router/text_template.h. Fields that the kernel doesn't print, or not as they are (flags as words, hashed
 * pointers), are there but never present; common fields are left out. Returns 0 or -errno. */
int text_schema_make(const struct schema *binary, const char *system, const char *event, void **ret_bytes,
	size_t *ret_size);

/* The same for an event of which there is no format file, from one of its lines: an integer for each pair whose
 * value looks like one, a string for each other pair, and "text". What later lines have that doesn't fit is in
 * their text alone. Returns 0 or -errno. */
int text_schema_infer(const struct text_piece *body, const char *system, const char *event, void **ret_bytes,
	size_t *ret_size);

/* Whether no event of this kind can hold a forged line: each of its strings is too short for one, or ends
 * with a canary. What follows such an event is what it looks like; see router/text_join.h. */
bool text_schema_is_guarded(const struct schema *schema);

/* Encodes `body` for `schema` (a text schema) into at most `room` bytes at `payload`. Understood:
 * "name=value" and "name: value" pairs, quoted and bare values, decimal, hex ("ffffff9c" for a signed
 * 32-bit field is -100), negative, (fault), uprobe and kprobe bodies "(address) n=1 s=\"x\"", syscall
 * bodies "sys_openat(dfd: ffffff9c, ...)" and "sys_openat -> 0x3". Strings stand in quotes with nothing
 * escaped: the end is the last quote that the following fields allow; *ret_suspect is set when more than
 * one reading was possible. A system call's body is its whole text, from the name on.
 *
 * Returns 0; -EBADMSG: no reading at all, only "text" is set; -EAGAIN: as that, because the text ends
 * inside a string, so that the next line is more of it, whatever it looks like (router/text_join.h asks for
 * this); -ENOSPC: `room`, or the 16 bits of offsets, are too small for the body, and nothing is set;
 * -EINVAL: not a text schema. *ret_size and *ret_suspect are set in the first three cases. */
int text_fields_encode(const struct schema *schema, const struct text_piece *body, void *payload, size_t room,
	size_t *ret_size, bool *ret_suspect);

#endif
