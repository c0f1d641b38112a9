/* A caller's table of members, flattened and turned into fetch arguments and a condition. Pure but for memory. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_SHAPE_H
#define TRACEFAN_CONSUMERS_CLIENT_SHAPE_H

#include "consumers/client/failure.h"
#include "consumers/client/probe_spec.h"
#include "consumers/client/tracefan.h"

#include <stdbool.h>
#include <stddef.h>

#define SHAPE_MEMBERS_MAX PROBE_SPEC_ARGS_MAX
#define SHAPE_SIZE_MAX    (1U << 20) /* of the caller's structure */

/* One member that is no group, at its place in the whole structure. */
struct shape_member {
	char name[PROBE_SPEC_ARG_NAME_MAX];
	size_t offset, size;
	enum tfan_member_kind kind;
	bool is_big_endian;
	char field[CONTROL_NAME_MAX];                  /* the event's field that fills it */
	char address_field[PROBE_SPEC_ARG_NAME_MAX];   /* TFAN_MEMBER_STRING_ADDRESS: and its address, or "" */
};

struct shape_plan {
	size_t size; /* of the caller's structure */
	struct shape_member members[SHAPE_MEMBERS_MAX];
	size_t member_count;
	/* Fetch arguments "NAME=FETCH:TYPE", blank-separated, and the conditions joined; owned. */
	char *arguments;
	char *condition; /* "" where there is none */
};

static inline bool shape_is_integer(enum tfan_member_kind kind)
{
	return kind == TFAN_MEMBER_UNSIGNED || kind == TFAN_MEMBER_SIGNED || kind == TFAN_MEMBER_BOOL;
}

/* Failures are TFAN_FETCH_ARG and name the member. *ret is the caller's: shape_plan_free. */
int shape_plan_make(const struct tfan_shape *shape, struct shape_plan **ret, struct failure *failure);
void shape_plan_free(struct shape_plan *plan);

/* "(a) && (b)", or the one that isn't empty. The caller's to free; NULL: no memory. `ret_shift`, where it isn't
 * NULL, is where b begins in it. */
char *shape_join_conditions(const char *a, const char *b, size_t *ret_shift);

#endif
