/* The text of an event against the template of its kind. Pure. */
#ifndef TRACEFAN_ROUTER_TEXT_MATCH_H
#define TRACEFAN_ROUTER_TEXT_MATCH_H

#include "router/text_payload.h"

enum text_match {
	TEXT_MATCH_NONE = 0,  /* the kernel doesn't print this event so */
	TEXT_MATCH_OPEN,      /* so far it does, but the text ends inside a string: more lines follow */
	TEXT_MATCH_ONE,       /* there is one reading, and the payload has its fields */
	TEXT_MATCH_SEVERAL,   /* strings that look like fields allow several: this is the one with the last ends */
};

/* `body` is the payload's. What the fields hold is of no use after TEXT_MATCH_NONE and TEXT_MATCH_OPEN. */
enum text_match text_match(const char *pattern, const struct text_piece *body, struct text_payload *payload);

#endif
