/* The command line's notation for a probe, taken apart. Pure: no system calls.
 *
 *   [NAME=]KIND:PLACE [ARG=FETCH[:TYPE]]... [stack] [ustack] [if FILTER]
 *
 *   tracepoint:SYSTEM:EVENT              with arguments: PROBE_EVENT
 *   kprobe:SYMBOL[+OFFSET]               kretprobe:SYMBOL[+maxactive=N]
 *   uprobe:PATH:SYMBOL[+OFFSET]          uprobe:PATH:0xOFFSET (in the file, bytes)
 *   uretprobe:PATH:SYMBOL                uretprobe:PATH:0xOFFSET
 *   usdt:PATH:PROVIDER:NAME
 *
 * A path may hold colons as it is: the symbol begins behind the last one (PROVIDER behind the last but
 * one). Blanks and quotes in PLACE are written behind a backslash or inside double or single quotes; a
 * quoted or escaped colon does not separate. In double quotes a backslash still escapes; in single quotes
 * nothing does. FETCH is passed on as written: a blank inside its double quotes does not end it. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_PROBE_SPEC_H
#define TRACEFAN_CONSUMERS_CLIENT_PROBE_SPEC_H

#include "shm/control_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBE_SPEC_ARGS_MAX      64   /* fetch arguments of one probe */
#define PROBE_SPEC_ARG_NAME_MAX  32   /* the kernel's MAX_ARG_NAME_LEN, with the NUL */
#define PROBE_SPEC_PATH_MAX      4096 /* with the NUL */
#define PROBE_SPEC_NAME_MAX      CONTROL_SYMBOL_MAX
#define PROBE_SPEC_TEXT_MAX      16384 /* bytes of a whole definition */
#define PROBE_SPEC_MAXACTIVE_MAX 4096  /* the kernel's KRETPROBE_MAXACTIVE_MAX */

struct probe_spec_arg {
	char name[PROBE_SPEC_ARG_NAME_MAX];
	/* Offsets into probe_spec.fetch of NUL-ended texts; `type` is the empty text where none was given. */
	uint16_t fetch, type;
	int position, fetch_position; /* bytes in the definition */
};

struct probe_spec {
	enum control_probe_kind kind;
	char name[PROBE_SPEC_NAME_MAX];
	char system[CONTROL_NAME_MAX], event[CONTROL_NAME_MAX]; /* tracepoint; USDT: provider and name */
	char symbol[CONTROL_SYMBOL_MAX];
	char path[PROBE_SPEC_PATH_MAX];
	uint64_t offset;
	bool by_offset; /* uprobes: `offset` counts from the file's begin and `symbol` is empty */
	uint32_t maxactive;
	bool stack, ustack; /* the kernel's and the program's stack with each event */
	size_t arg_count;
	struct probe_spec_arg args[PROBE_SPEC_ARGS_MAX];
	char fetch[CONTROL_FETCH_MAX];
	size_t fetch_size;
	char filter[CONTROL_FILTER_MAX];
	int place_position, symbol_position, filter_position; /* bytes in the definition */
};

struct probe_spec_error {
	int position;         /* byte in the definition, -1: it isn't in it */
	const char *argument; /* the name of the argument where there is no position, else NULL; the spec's */
	char message[320];
};

/* Returns 0, or -EINVAL with *ret_error filled. *ret is large: keep it off small stacks. Its content is
 * undefined after a failure. */
int probe_spec_parse(const char *text, struct probe_spec *ret, struct probe_spec_error *ret_error);

/* Appends the arguments of a text of their own, without a filter. Positions in *spec and *ret_error count in
 * that text. Returns as probe_spec_parse. */
int probe_spec_add_arguments(const char *text, struct probe_spec *spec, struct probe_spec_error *ret_error);

/* "kprobe", ...: the notation's word for a kind. */
const char *probe_spec_kind_name(enum control_probe_kind kind);

/* Whether the place is one in a file: uprobe, uretprobe, usdt. */
bool probe_spec_in_file(enum control_probe_kind kind);

static inline const char *probe_spec_fetch(const struct probe_spec *spec, size_t i)
{
	return spec->fetch + spec->args[i].fetch;
}

static inline const char *probe_spec_type(const struct probe_spec *spec, size_t i)
{
	return spec->fetch + spec->args[i].type;
}

#endif
