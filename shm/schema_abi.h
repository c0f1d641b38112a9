/* A trace's schema: layout only. Made by the router, read by the consumer, in a sealed segment.
 *
 *   +----------------------+-------------------------+--------------------+
 *   | struct schema_header | struct schema_field[n]  | strings (NUL-ended)|
 *   +----------------------+-------------------------+--------------------+
 *
 * All *_name, *_type, print_format are offsets into the strings; offset 0 is the empty string. */
#ifndef TRACEFAN_SHM_SCHEMA_ABI_H
#define TRACEFAN_SHM_SCHEMA_ABI_H

#include "shm/segment_abi.h"

#include <stdint.h>

#define SCHEMA_FIELDS_MAX  1024
#define SCHEMA_STRINGS_MAX (1U << 20)

enum schema_flag {
	SCHEMA_BIG_ENDIAN = 1 << 0, /* numbers in the payload are big-endian */
	SCHEMA_LONG4 = 1 << 1,      /* the traced kernel's long has 4 bytes */
	SCHEMA_TEXT = 1 << 2,       /* payloads come from a text source: they begin with a bitmap of one bit
				     * per field (64-bit words, native order), set where the line had it */
};

enum schema_kind {
	SCHEMA_INTEGER = 1, /* `size` 1, 2, 4 or 8 */
	SCHEMA_STRING = 2,  /* bytes up to a NUL or the end of the field */
	SCHEMA_BYTES = 3,   /* an array or anything else: `count` elements of `element_size` */
};

enum schema_place {
	SCHEMA_FIXED = 0,    /* at `offset`, `size` bytes */
	SCHEMA_DATA_LOC = 1, /* a word at `offset`: low half the data's offset in the payload, high half its length */
	SCHEMA_REL_LOC = 2,  /* the same, but the data's offset counts from the word's end */
	SCHEMA_TAIL = 3,     /* from `offset` to the end of the payload (a field with size 0) */
};

enum schema_display {
	SCHEMA_DECIMAL = 0,
	SCHEMA_HEX = 1,     /* the kernel prints it in hex: pointers, flags, x8..x64 */
	SCHEMA_OCTAL = 2,
	SCHEMA_CHAR = 3,
	SCHEMA_BOOL = 4,
	SCHEMA_BITMASK = 5, /* bitmap or cpumask */
};

enum schema_field_flag {
	SCHEMA_SIGNED = 1 << 0,
	SCHEMA_POINTER = 1 << 1,
	SCHEMA_COMMON = 1 << 2,   /* one of the common_ fields */
	SCHEMA_SYMBOLIC = 1 << 3, /* the print format prints it by __print_symbolic or __print_flags */
	SCHEMA_HIDDEN = 1 << 4,   /* tracefan's own: address canaries; not shown */
	SCHEMA_FALLIBLE = 1 << 5, /* a string that a probe fetches: a place of length 0 is one that could not be
				   * read, for an empty string has its NUL */
};

struct schema_field {
	uint32_t name;
	uint32_t type; /* the C type's text */
	uint32_t offset;
	uint32_t size; /* SCHEMA_DATA_LOC, SCHEMA_REL_LOC: of the word, 4 or 2 */
	uint32_t element_size;
	uint32_t count;
	uint8_t kind;    /* enum schema_kind */
	uint8_t place;   /* enum schema_place */
	uint8_t display; /* enum schema_display */
	uint8_t flags;   /* enum schema_field_flag */
	uint32_t reserved;
};
_Static_assert(sizeof(struct schema_field) == 32, "schema field");

struct schema_header {
	struct segment_header segment;
	uint64_t trace_id;
	uint64_t probe_id;
	uint32_t event_type; /* the kernel's number of the event (common_type), 0 where there is none */
	uint32_t flags;      /* enum schema_flag */
	uint32_t field_count;
	uint32_t strings_size;
	uint32_t fixed_size;   /* least payload that holds all fixed fields and words */
	uint32_t system;       /* for example "sched" */
	uint32_t event;        /* for example "sched_switch" */
	uint32_t print_format; /* the kernel's print fmt */
	uint64_t reserved[2];
};
_Static_assert(sizeof(struct schema_header) == 128, "schema header");

#endif
