/* The kernel's functions that a filter names: FIELD.function == NAME, or an address inside of one. The router has no table of
 * them, so the library says behind the filter where they lie (router/filter_grammar.c: `where`), by what this process may
 * read in /proc/kallsyms. So nobody learns an address who could not read it there. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_FUNCTIONS_H
#define TRACEFAN_CONSUMERS_CLIENT_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct tfan;

/* A name in the text. */
struct functions_use {
	size_t at, size;
};

/* The next such name from *at on, outside of strings; *at becomes its end. Pure. */
bool functions_next(const char *text, size_t *at, struct functions_use *ret);

/* Adds to the filter, in an array of `room` bytes, where the functions lie that it names; nothing if it names none, or if the
 * events are of another time or machine. Returns 0 or -errno with the failure set, whose position counts in the filter. */
int functions_define(struct tfan *tfan, char *filter, size_t room);

#endif
