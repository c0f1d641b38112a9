/* The C type of a format file's field, taken apart. Pure. */
#ifndef TRACEFAN_ROUTER_C_TYPE_H
#define TRACEFAN_ROUTER_C_TYPE_H

#include "shm/schema_abi.h"

#include <stdbool.h>
#include <stdint.h>

#define C_TYPE_BASE_MAX 64

struct c_type {
	enum schema_place place;   /* by __data_loc or __rel_loc; else SCHEMA_FIXED */
	char base[C_TYPE_BASE_MAX]; /* without qualifiers and dimensions; cut where it is longer */
	const char *dimensions;    /* from the first '[' of the text on; "" where there is none */
	bool is_unsigned, pointer, aggregate;
	unsigned int element_size; /* by the type's name; 0: not known */
	bool is_signed;            /* as C has it: for files that don't say */
};

/* `text` as libtraceevent gives it: "unsigned long[16]", "__data_loc char[]". *ret points into it. */
void c_type_parse(const char *text, unsigned int long_size, struct c_type *ret);

/* The size of the elements of an array of `size` bytes (0: not known before an event is seen): by the
 * type where that is known and fits, else by the number of elements where the dimension is a plain one,
 * else 1. */
uint32_t c_type_element_size(const struct c_type *type, uint32_t size);

#endif
