/* The session's standing probes: those that its configuration defines, by name, for whoever may
 * attach to them. To a consumer each is an event of the system STANDING_SYSTEM. It is in the kernel
 * while somebody uses it. */
#ifndef TRACEFAN_READER_STANDING_H
#define TRACEFAN_READER_STANDING_H

#include "reader/options.h"
#include "shm/control_abi.h"

#include <stddef.h>

#define STANDING_SYSTEM "probes"
#define STANDING_MAX    64

struct standing {
	int line;                     /* in the configuration */
	int target;                   /* the opened file of a uprobe; -1: none */
	struct control_create create; /* its name is the probe's, too; its path is the file's */
};

/* Takes apart "KIND:PLACE [ARG=FETCH[:TYPE]]...", where PLACE is SYMBOL[+OFFSET] in the kernel or
 * PATH:0xOFFSET in a file: to look for a symbol in a file is not the reader's. Pure. Returns 0, or
 * -EINVAL with *ret_error filled in. */
int standing_parse(
	const char *name, const char *text, struct standing *ret, struct options_error *ret_error);

/* The one that a consumer's request for a tracepoint means, or NULL. */
const struct standing *standing_find(
	const struct standing *standing, size_t count, const struct control_create *create);

/* Opens what it is to be set in. Returns 0 or -errno. */
int standing_open(struct standing *standing);

#endif
