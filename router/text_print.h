/* The kernel's print format, taken apart: format string, conversions, arguments. Pure. */
#ifndef TRACEFAN_ROUTER_TEXT_PRINT_H
#define TRACEFAN_ROUTER_TEXT_PRINT_H

#include "router/span.h"
#include "shm/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One conversion of the format string. */
struct text_conversion {
	char letter;
	char pointer; /* the letter behind %p, 0: none */
	bool padded;  /* a width or a precision is given */
	unsigned int stars;
};

/* Joins the constants at s->at, "..." "...", into one text of the caller's to free; NULL: no memory. */
char *text_print_format(struct span *s);

/* Reads what follows a '%' and returns where the text goes on. */
const char *text_print_conversion(const char *at, struct text_conversion *ret);

/* What an argument shows, when it is a field and nothing else: its index, else -1. *ret_element is the
 * index of an array's element, or -1; *ret_truth says that it is shown as "true" or "false". */
int text_print_field(const struct schema *schema, struct span argument, int64_t *ret_element,
	bool *ret_truth);

#endif
