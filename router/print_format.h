/* What a format file's "print fmt" says of its fields: in which base and form the kernel itself shows
 * each. libtraceevent's own reading of it gives up on much of what a present kernel writes there, and only
 * a little is wanted here. Pure. */
#ifndef TRACEFAN_ROUTER_PRINT_FORMAT_H
#define TRACEFAN_ROUTER_PRINT_FORMAT_H

#include <stddef.h>

/* One mention of a field among the arguments. */
enum print_format_use {
	PRINT_DECIMAL = 0, /* %d, %u and the like, of the field and nothing else */
	PRINT_HEX,         /* %x, %p; __print_hex, __print_array */
	PRINT_OCTAL,
	PRINT_CHAR,
	PRINT_STRING,      /* %s, __get_str */
	PRINT_BITMASK,     /* __get_bitmask, __get_cpumask */
	PRINT_BINARY,      /* an address by %pM, %pI4 and so on, behind a pointer to the field */
	PRINT_SYMBOLIC,    /* __print_symbolic, __print_flags of an expression that begins with the field */
};

/* `name` has `length` bytes and no NUL. */
typedef void (*print_format_visit)(void *context, const char *name, size_t length, enum print_format_use use);

/* Calls `visit` for every field that an argument shows, in the order of the arguments; a field may come
 * several times. `text` is what follows "print fmt:"; whatever can't be made out is passed over. */
void print_format_walk(const char *text, size_t size, print_format_visit visit, void *context);

#endif
