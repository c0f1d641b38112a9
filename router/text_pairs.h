/* "name=value" and "name: value" pairs in the text of an event whose print format isn't known or doesn't
 * fit: by guess, where a template compares. Pure. */
#ifndef TRACEFAN_ROUTER_TEXT_PAIRS_H
#define TRACEFAN_ROUTER_TEXT_PAIRS_H

#include "router/text_payload.h"

#include <stdbool.h>

/* One pair: the name, and the value without quotes. */
struct text_pair {
	struct text_piece name, value;
	bool quoted;
};

/* Finds the next pair at or after *at in [*at, end), and moves *at behind it. Values end at a blank or a
 * comma or a closing bracket, quoted ones at the last quote before the next pair, and bare ones reach to
 * the next pair when what follows can't be one ("comm=Web Content pid=5"). */
bool text_pairs_next(const char **at, const char *end, struct text_pair *ret);

/* What a value looks like to somebody who knows nothing of the field. */
enum text_look {
	TEXT_LOOKS_STRING,
	TEXT_LOOKS_DECIMAL, /* and fits a signed 64-bit integer */
	TEXT_LOOKS_HEX,     /* with 0x */
};
enum text_look text_pairs_look(const struct text_pair *pair);

/* Sets the fields that the pairs name. Returns how many; *ret_suspect when a name came twice. `known` says
 * that the print format is known and this isn't it: a number of a field in hex that might be decimal is then
 * left out. */
unsigned int text_pairs_encode(const struct text_piece *body, bool known, struct text_payload *payload,
	bool *ret_suspect);

#endif
