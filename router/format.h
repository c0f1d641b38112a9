/* One format file (events/SYSTEM/EVENT/format) as a schema. Pure but for memory.
 *
 * Not by libtraceevent, which keeps silent about fields that it can't read (a probe's array of strings is
 * one) and then ends the list there; see docs/decisions/0005. */
#ifndef TRACEFAN_ROUTER_FORMAT_H
#define TRACEFAN_ROUTER_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

/* The machine that wrote the file. */
struct format_target {
	bool big_endian;
	unsigned int long_size; /* 4 or 8 */
};

/* The bytes of a schema with ids 0, the caller's to free. Returns 0, -ENOMEM or -EBADMSG (*ret_reason,
 * static, says why). */
int format_schema(const struct format_target *target, const char *system, const char *text, size_t size,
	void **ret_bytes, size_t *ret_size, const char **ret_reason);

#endif
