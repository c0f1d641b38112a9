/* Filters: which events a consumer wants. Pure but for memory: text, schema and event in, decision
 * out; no system calls, no logging, and no allocation in filter_match and filter_index_match.
 *
 *   text --filter_parse--> filter_ast --filter_compile, with a schema--> filter_program
 *
 *   filter_program --filter_match--------> whether an event is accepted
 *                  |--filter_union-------> one program for many
 *                  |--filter_kernel_text-> what the kernel's `filter` file gets
 *                  '--filter_index_set---> many consumers' programs, matched at once
 *
 * The language is that of docs/filters.md: the kernel's event filters and what they lack. Its
 * grammar stands at the head of router/filter_grammar.c.
 *
 * A comparison with something that the event lacks (a field that its line did not show, a name that
 * is not known yet, an unreadable string) is false, and so is its negation: `!` is carried down to
 * the comparisons first. So `!(x == 1)` is `x != 1`, and neither accepts an event without x.
 *
 * Nothing here is thread-safe: programs that share a comparison share its scratch memory. */
#ifndef TRACEFAN_ROUTER_FILTER_H
#define TRACEFAN_ROUTER_FILTER_H

#include "shm/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILTER_TEXT_MAX  16384 /* bytes of a filter's text */
#define FILTER_DEPTH_MAX 64    /* parentheses and `!` inside each other */
#define FILTER_TESTS_MAX 1024  /* comparisons in one filter */
#define FILTER_SET_MAX   4096  /* values in one pair of braces */

/* What was wrong with a filter, for people. */
struct filter_failure {
	int32_t position;  /* byte in the text, -1: of no one place (out of memory) */
	int32_t length;    /* bytes from there on that are meant, at least 1 */
	char message[240]; /* names the thing and, where there is one, the mend */
	char near[160];    /* names like the one that is unknown, ", " between them; may be empty */
};

/* The failure below the text: its line with a caret under the place, the message, near names. At
 * most `room` bytes with the NUL; returns what snprintf would. Control characters of the text are
 * shown as '?'. */
int filter_failure_show(
	const struct filter_failure *failure, const char *text, char *out, size_t room);

struct filter_ast; /* opaque: a parsed filter, not yet bound to a schema */

/* Parses `size` bytes (no NUL needed). An empty or blank text is the filter that accepts
 * everything. Returns 0, -EINVAL or -E2BIG with *ret_failure set, or -ENOMEM. The result is the
 * caller's to release. */
int filter_parse(
	const char *text, size_t size, struct filter_ast **ret, struct filter_failure *ret_failure);
void filter_ast_release(struct filter_ast *ast);

/* Things about an event that do not stand in its payload. */
enum filter_fact {
	FILTER_TID = 1 << 0,
	FILTER_TGID = 1 << 1,
	FILTER_CPU = 1 << 2,
	FILTER_COMM = 1 << 3,
	FILTER_UID = 1 << 4,
	FILTER_CGROUP = 1 << 5,
	FILTER_GID = 1 << 6,
	FILTER_EXE = 1 << 7,
};
/* Those of the process, which the payload says nothing of. */
#define FILTER_PROCESS (FILTER_TGID | FILTER_UID | FILTER_GID | FILTER_CGROUP | FILTER_EXE)

#define FILTER_COMM_SIZE 16

struct filter_event {
	const void *payload;
	size_t size;
	uint32_t facts; /* enum filter_fact: which of the following are known for this event */
	int32_t tid;    /* the kernel's common_pid */
	int32_t tgid;
	uint32_t cpu;
	uint32_t uid, gid;
	const char *comm;   /* FILTER_COMM_SIZE bytes, or fewer and a NUL */
	const char *cgroup; /* path below the cgroup mount, NUL-terminated */
	const char *exe;    /* the file that it executes, NUL-terminated */
};

enum filter_compile_flag {
	/* One filter for many kinds of events: a field that this schema lacks is no error, unless
	 * the environment names others that lack it, too; comparisons with it are false. */
	FILTER_LENIENT = 1 << 0,
};

/* What compiling has to know beside the schema. All zeroes is a valid environment. */
struct filter_environment {
	const char *probe; /* the name that `probe` is compared with; NULL: none */
	uint32_t flags;    /* enum filter_compile_flag */
	/* FILTER_LENIENT: the other kinds of events, NULL: not known, so that no field is an error.
	 */
	const struct schema *const *others;
	size_t other_count;
	/* Of a text schema the one that the kernel's own is: how wide numbers are, and the names of
	 * values, stand there. NULL: not known. */
	const struct schema *binary;
	/* For the kernel's half of a text session's filter: the text schema, by which the filter
	 * has been compiled. What only that can say of an event is true. NULL: this is not for
	 * that. */
	const struct schema *text;
	uint32_t lacks; /* enum filter_fact: never known in this session. Using uid and the like is an
			 * error then; without FILTER_TGID, `pid` is the thread's id, as everywhere
			 * in ftrace */
};

struct filter_program; /* opaque: checked; holds all it needs of the schema */

/* Binds a filter to a schema: finds fields, reads values by their width and sign, simplifies, and
 * makes a program whose jumps only go forward and whose reads are checked against the payload's
 * size. Returns 0, -EINVAL with *ret_failure set, or -ENOMEM. The result is the caller's to
 * release. */
int filter_compile(const struct filter_ast *ast, const struct schema *schema,
	const struct filter_environment *environment, struct filter_program **ret,
	struct filter_failure *ret_failure);
void filter_program_release(struct filter_program *program);

bool filter_match(struct filter_program *program, const struct filter_event *event);

/* The facts (enum filter_fact) that the program looks at: the caller need not find out others. */
uint32_t filter_program_facts(const struct filter_program *program);
/* Whether it accepts no event at all. */
bool filter_program_accepts_none(const struct filter_program *program);
/* How often a regular expression gave up at its limit in filter_match, which counts as no match. */
uint64_t filter_program_limited(const struct filter_program *program);
/* The program as text in the same language, simplified; the caller's to free. 0 or -ENOMEM. */
int filter_program_show(const struct filter_program *program, char **ret);

/* ---- the kernel's half ---- */

/* A program that accepts what at least one of `count` programs of one schema accepts, simplified:
 * absorbed and duplicate terms gone, equalities of one field merged. No program at all accepts
 * nothing. The inputs stay the caller's. Returns 0 or -ENOMEM. */
int filter_union(
	const struct filter_program *const *programs, size_t count, struct filter_program **ret);

#define FILTER_KERNEL_TEXT_MAX 4095 /* a write to `filter` must be shorter than a page */

/* The narrowest text for the kernel's `filter` file that accepts at least what the program accepts,
 * in at most `room` bytes (its NUL included). What the kernel lacks is widened to "true"; a text
 * that would be too long is coarsened step by step. "0" takes the kernel's filter away: everything
 * is recorded. *ret_exact: the kernel accepts nothing that the program does not. For a text
 * session, compile for the kernel's binary schema (filter_environment.text) to get this text.
 * Returns 0 or -ENOMEM; *ret_text is the caller's to free. */
int filter_kernel_text(
	const struct filter_program *program, size_t room, char **ret_text, bool *ret_exact);

/* ---- many consumers on one probe ---- */

struct filter_index; /* opaque */

/* `seed`: any number that consumers can't know, so that they can't choose values that share a
 * bucket. */
int filter_index_create(uint64_t seed, struct filter_index **ret);
void filter_index_release(struct filter_index *index);

/* Adds a consumer, or replaces the program of the one that is known as `user`. The program stays
 * the caller's and may be released at once. Returns 0, or -ENOMEM and nothing has changed. */
int filter_index_set(struct filter_index *index, void *user, const struct filter_program *program);
/* Takes a consumer out; -ENOENT if it is not in. Never fails otherwise. */
int filter_index_remove(struct filter_index *index, const void *user);
/* How often a regular expression that the user's program asked gave up here since it was set last; 0
 * if the user is not in. */
uint64_t filter_index_limited(const struct filter_index *index, const void *user);
size_t filter_index_count(const struct filter_index *index);
/* The facts that any of the programs looks at. */
uint32_t filter_index_facts(const struct filter_index *index);

enum filter_found {
	FILTER_NOBODY,
	FILTER_ONE, /* *ret_user */
	FILTER_ASK, /* only filter_index_match knows */
};

/* The same as filter_index_match for the events of most indexes, without what isn't in their payload: who accepts one is
 * known by one number. */
enum filter_found filter_index_find(struct filter_index *index, const void *payload, size_t size, void **ret_user);

/* The consumers whose programs accept the event, each once, in no particular order: their number;
 * *ret_users is valid until the next call on this index. */
size_t filter_index_match(
	struct filter_index *index, const struct filter_event *event, void *const **ret_users);

#endif
