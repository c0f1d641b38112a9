/* Fetch arguments from the user's notation to the kernel's: $arg1..$arg6 of user functions by the machine's
 * calling convention, those of a static probe by its note. Pure. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_FETCH_H
#define TRACEFAN_CONSUMERS_CLIENT_FETCH_H

#include "consumers/client/probe_spec.h"
#include "consumers/client/usdt_arg.h"
#include "shm/control_abi.h"

#include <stdbool.h>
#include <stddef.h>

struct fetch_context {
	enum control_probe_kind kind;
	unsigned int machine; /* EM_... of the file, for user functions */
	bool is_64;
	const struct usdt_args *usdt; /* PROBE_USDT: what the note says */
};

/* Where each argument went, so that a position in the packed text can be told in the user's. */
struct fetch_places {
	size_t count;
	struct {
		size_t packed;    /* offset of the argument's text in control_create.fetch */
		size_t size;
		int position;     /* in the definition; -1: it isn't in it */
		size_t verbatim;  /* so many bytes of the two texts are the same */
	} rows[PROBE_SPEC_ARGS_MAX];
};

/* Fills in create->fetch and fetch_count. Without any argument a static probe gets all of its own that the
 * kernel can fetch, named arg1.. by their place. Returns 0, or -EINVAL with *ret_error filled. */
int fetch_pack(const struct probe_spec *spec, const struct fetch_context *context, struct control_create *create,
	struct fetch_places *ret_places, struct probe_spec_error *ret_error);

/* The argument that a byte of create->fetch belongs to, or NULL. */
const char *fetch_argument(const struct fetch_places *places, const struct control_create *create, int packed);

/* The byte of the definition that a byte of create->fetch stands for, or -1. */
int fetch_position(const struct fetch_places *places, int packed);

#endif
