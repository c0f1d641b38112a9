/* Schemas out of the kernel's format files. Pure but for memory: no files are opened. */
#ifndef TRACEFAN_ROUTER_CATALOG_H
#define TRACEFAN_ROUTER_CATALOG_H

#include "router/page.h"
#include "shm/schema.h"

#include <stddef.h>
#include <stdint.h>

struct catalog; /* opaque; one per session */

/* One kind of event that the traced kernel can emit. Owned by the catalog; lives as long, or until catalog_remove. */
struct catalog_event {
	uint16_t type; /* common_type, the number in the binary record */
	char *system, *name;
	void *schema_bytes; /* trace_id and probe_id are 0: catalog_schema_for fills them in */
	size_t schema_size;
	struct schema schema; /* view of schema_bytes */
	/* Where the router reads what it needs of every event, precomputed. */
	uint16_t pid_offset;  /* common_pid, 4 bytes; UINT16_MAX: the event has none */
	void *user; /* the router's own row for this event, NULL at first */
};

/* `long_size` 4 or 8. Returns 0 or -ENOMEM. */
int catalog_create(bool big_endian, unsigned int long_size, struct catalog **ret);
void catalog_release(struct catalog *catalog);

/* Reads one format file. An event that is known already by type or by system and name is replaced only
 * if its text differs: then *ret is a new event with `user` NULL, and the old one can no longer be found
 * but may still be read by who holds it. Returns 0, -EBADMSG (not a format file; *ret_reason, static, says
 * why) or -ENOMEM. */
int catalog_add(struct catalog *catalog, const char *system, const char *text, size_t size,
	struct catalog_event **ret, const char **ret_reason);
/* Forgets an event that the kernel has no more, and frees it. */
void catalog_remove(struct catalog *catalog, struct catalog_event *event);
/* Adds the kernel's addresses of format strings (printk_formats). Returns 0 or -errno. */
int catalog_add_printk_formats(struct catalog *catalog, const char *text, size_t size);

struct catalog_event *catalog_by_type(const struct catalog *catalog, uint16_t type);
struct catalog_event *catalog_by_name(const struct catalog *catalog, const char *system, const char *name);

/* A copy of the event's schema with these ids: bytes owned by the caller. Returns 0 or -ENOMEM. */
int catalog_schema_for(const struct catalog_event *event, uint64_t trace_id, uint64_t probe_id,
	void **ret_bytes, size_t *ret_size);

/* The size of the fixed common part: least bytes that every event of this kernel has. common_type is the
 * first two bytes, in the kernel's byte order. */
uint32_t catalog_common_size(const struct catalog *catalog);

/* The kernel's own print format applied to one event, by libtraceevent, as text: for show and for
 * comparison with other tools; slow, and not for the data path (router/printer.h). Returns 0, -EOPNOTSUPP
 * (the library can't read this event's format), -EBADMSG (a short event, or bad printk_formats) or -ENOMEM;
 * *ret_text is the caller's to free. */
int catalog_print(struct catalog *catalog, const struct catalog_event *event, const void *data, size_t size,
	char **ret_text);

#endif
