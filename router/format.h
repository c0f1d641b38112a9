/* One format file (events/SYSTEM/EVENT/format) as a schema. Pure but for memory. libtraceevent reads the
 * fields; what it drops or guesses (a missing "signed:", the size of an array's elements, the base in which
 * the kernel prints) is taken from the text. */
#ifndef TRACEFAN_ROUTER_FORMAT_H
#define TRACEFAN_ROUTER_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

struct tep_handle;
struct tep_event;

/* The machine that wrote the file. */
struct format_target {
	bool big_endian;
	unsigned int long_size;
};

/* What of a file libtraceevent gets to see. Its reader of print formats leaks and reads freed memory on
 * some that kernels write, so only what shows events by it asks for that part. */
enum format_part {
	FORMAT_FIELDS,
	FORMAT_ALL,
};

/* Checks the text's shape and lets libtraceevent parse it. Returns 0, -ENOMEM or -EBADMSG (*ret_reason,
 * static, says why); on success *ret_tep is the caller's to tep_free, and *ret_event lives in it. */
int format_parse(const struct format_target *target, const char *system, const char *text, size_t size,
	enum format_part part, struct tep_handle **ret_tep, struct tep_event **ret_event, const char **ret_reason);

/* The whole way: the bytes of a schema with ids 0, the caller's to free. Returns as above. */
int format_schema(const struct format_target *target, const char *system, const char *text, size_t size,
	void **ret_bytes, size_t *ret_size, const char **ret_reason);

#endif
