/* Globs as the kernel's filters have them: * any bytes, ? one byte, [a-c] and [!a-c] one of a
 * class, \ takes the next character as it is. A [ that is never closed stands for itself. */
#ifndef TRACEFAN_ROUTER_FILTER_GLOB_H
#define TRACEFAN_ROUTER_FILTER_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool filter_glob_match(const char *glob, size_t glob_size, const char *text, size_t size);

/* What a glob comes to. */
enum filter_glob_shape {
	GLOB_LITERAL,   /* nothing special: the text itself */
	GLOB_PREFIX,    /* text* */
	GLOB_SUFFIX,    /* *text */
	GLOB_SUBSTRING, /* *text* */
	GLOB_GENERAL,
};

/* The shape of a glob. But for GLOB_GENERAL, the literal text (its escapes resolved) is written to
 * `text`, which has room for glob_size bytes, and its size to *ret_size. */
enum filter_glob_shape filter_glob_shape(
	const char *glob, size_t glob_size, char *text, size_t *ret_size);

#endif
