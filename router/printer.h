/* One kind of event as the kernel itself would print it, by libtraceevent: for show and for comparison with
 * other tools. Slow, and not for the data path: some print formats make the library leak, or read memory
 * that it has freed (see docs/decisions/0005). */
#ifndef TRACEFAN_ROUTER_PRINTER_H
#define TRACEFAN_ROUTER_PRINTER_H

#include "router/format.h"
#include "shm/schema.h"

#include <stddef.h>

struct printer; /* opaque */

/* `text` is the format file, `schema` what it makes, `printk_formats` NUL-ended or NULL. Returns 0,
 * -EOPNOTSUPP (the library can't read this one), -EBADMSG (printk_formats) or -ENOMEM. */
int printer_create(const struct format_target *target, const struct schema *schema, const char *text, size_t size,
	const char *printk_formats, struct printer **ret);
void printer_release(struct printer *printer);

/* Returns 0, -EBADMSG (the event is shorter than its fields) or -ENOMEM; *ret_text is the caller's. */
int printer_print(const struct printer *printer, const void *data, size_t size, char **ret_text);

#endif
