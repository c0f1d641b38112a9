/* Regular expressions by PCRE2, bytes not characters, with a bound on the work that one match may
 * take. */
#ifndef TRACEFAN_ROUTER_FILTER_REGEX_H
#define TRACEFAN_ROUTER_FILTER_REGEX_H

#include "router/filter_ast.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILTER_REGEX_MAX 512 /* bytes of a pattern */

struct filter_regex;

/* Compiles the piece of `text` that is the pattern. Returns 0, -EINVAL with *failure set, or
 * -ENOMEM. */
int filter_regex_create(const char *text, struct ast_piece piece, struct filter_regex **ret,
	struct filter_failure *failure);
void filter_regex_release(struct filter_regex *regex);

/* Whether it matches anywhere in the text. One that gives up at its limit doesn't. */
bool filter_regex_match(struct filter_regex *regex, const char *text, size_t size);
/* How often it gave up. */
uint64_t filter_regex_limited(const struct filter_regex *regex);

#endif
