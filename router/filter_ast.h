/* A parsed filter, for the files of router/filter*.c and their tests: what stood in the text,
 * before any schema gave it a meaning. Made by filter_grammar.c, read by filter_compile.c. */
#ifndef TRACEFAN_ROUTER_FILTER_AST_H
#define TRACEFAN_ROUTER_FILTER_AST_H

#include "router/filter.h"

enum ast_kind {
	AST_ALL, /* the empty filter */
	AST_AND, /* its children, two or more */
	AST_OR,  /* the same */
	AST_NOT, /* one child */
	AST_TEST,
};

enum ast_op {
	AST_EQ,        /* == */
	AST_NE,        /* != */
	AST_LT,        /* < */
	AST_LE,        /* <= */
	AST_GT,        /* > */
	AST_GE,        /* >= */
	AST_BAND,      /* & */
	AST_GLOB,      /* ~ */
	AST_NOT_GLOB,  /* !~ */
	AST_LIKE,      /* =   : == for numbers, ~ for strings */
	AST_PREFIX,    /* ^= */
	AST_SUFFIX,    /* $= */
	AST_SUBSTRING, /* *= */
	AST_REGEX,     /* =~ */
	AST_IN,        /* in { ... } */
};

enum ast_suffix {
	AST_PLAIN,
	AST_USTRING,  /* .ustring */
	AST_FUNCTION, /* .function */
};

/* A piece of the text, by its place. */
struct ast_piece {
	uint32_t at, size;
};

enum ast_value_kind {
	AST_WORD,   /* as it stood: a number, a symbol, a name */
	AST_QUOTED, /* the piece is what stood between the quotes */
	AST_CPUS,   /* the piece is what stood between the braces */
};

struct ast_value {
	enum ast_value_kind kind;
	struct ast_piece piece;
	struct ast_value *next;
};

struct ast_node {
	enum ast_kind kind;
	struct ast_piece piece; /* the whole test, for messages */
	struct ast_node *first; /* children */
	struct ast_node *next;  /* the next child of the same parent */
	/* AST_TEST */
	struct ast_piece field;
	enum ast_suffix suffix;
	enum ast_op op;
	struct ast_piece op_piece;
	struct ast_value *values; /* one, or for AST_IN one or more */
};

/* Where a function of the kernel lies. */
struct ast_place {
	struct ast_value name, addresses;
	struct ast_place *next;
};

struct ast_block;

struct filter_ast {
	char *text; /* a copy, with a NUL behind it */
	size_t size;
	struct ast_node *root;
	struct ast_place *places;
	struct ast_block *blocks; /* memory of nodes and values */
};

/* Writes a failure; `near` is left empty. Always returns -EINVAL, for the caller to return. */
int filter_fail(struct filter_failure *failure, struct ast_piece where, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Keeps the few names most like `wanted` among those that are offered one by one. */
#define FILTER_NEAR_MAX 3
struct filter_near {
	const char *wanted;
	size_t size;
	unsigned int count;
	struct {
		char name[48];
		unsigned int distance;
	} best[FILTER_NEAR_MAX];
};
void filter_near_begin(struct filter_near *near, const char *wanted, size_t size);
void filter_near_offer(struct filter_near *near, const char *name, size_t size);
/* Puts the names into the failure. */
void filter_near_end(const struct filter_near *near, struct filter_failure *failure);

#endif
