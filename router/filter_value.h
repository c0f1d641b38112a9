/* The values of a filter's text, read as what the field that they are compared with needs. */
#ifndef TRACEFAN_ROUTER_FILTER_VALUE_H
#define TRACEFAN_ROUTER_FILTER_VALUE_H

#include "router/filter_ast.h"
#include "router/filter_field.h"
#include "router/filter_ranges.h"

/* What the functions below and filter_compile.c know while one filter is compiled. */
struct filter_compiler {
	const struct filter_ast *ast;
	const struct schema *source;  /* whole, with its print format */
	struct filter_schema *schema; /* the part that is kept */
	const struct filter_environment *environment;
	struct filter_failure *failure;
};

/* A number, or what stands for one. (field & mask) == value; mask covers the field but for some
 * symbols. */
struct filter_number {
	uint64_t value; /* sign-extended for a signed field */
	uint64_t mask;  /* never more than the field's width */
};

/* All return 0, -EINVAL with the failure set, or -ENOMEM. */

/* For ==, !=, & and sets: also symbols, and bit patterns: 0xffffffff is the s32 -1. */
int filter_value_number(const struct filter_compiler *compiler, const struct filter_field *field,
	const struct ast_value *value, struct filter_number *ret);
/* For < <= > >=: in the field's own range. */
int filter_value_ordered(const struct filter_compiler *compiler, const struct filter_field *field,
	struct ast_piece piece, uint64_t *ret);
/* LO..HI, both in the field's own range. */
bool filter_value_is_range(const struct filter_compiler *compiler, const struct ast_value *value);
int filter_value_range(const struct filter_compiler *compiler, const struct filter_field *field,
	const struct ast_value *value, struct filter_range *ret);
/* Whether a word is a number, or a range of two, whatever it is compared with. */
bool filter_value_is_numeric(const struct filter_compiler *compiler, const struct ast_value *value);
/* A list of CPUs in the kernel's form: 0-2,5,8-15:1/4. The numbers as they are, no order keys. */
int filter_value_cpus(
	const struct filter_compiler *compiler, struct ast_piece piece, struct filter_ranges *ret);
/* The addresses of a kernel function, as the filter says behind `where`. */
int filter_value_function(
	const struct filter_compiler *compiler, struct ast_piece piece, struct filter_range *ret);

/* A piece for a message: "%.*s" with these two. */
static inline int filter_piece_length(struct ast_piece piece)
{
	return (int)(piece.size < 48 ? piece.size : 48);
}
static inline const char *filter_piece_text(
	const struct filter_compiler *compiler, struct ast_piece piece)
{
	return compiler->ast->text + piece.at;
}

#endif
