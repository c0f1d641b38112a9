/* How the kernel prints one kind of event, made out of its format file once, so that its lines can be
 * taken apart by comparison instead of by guess. Pure but for memory.
 *
 * A text schema keeps it in print_format: one character per field, a blank, and, where the kernel's own
 * print format could be understood, the template:
 *
 *   "s44t filename=%s0/0; pid=%d1/4; old_pid=%d2/4;"
 *
 * Characters per field: '1' '2' '4' '8' an integer of so many bytes in the kernel, 's' a string, 'n' an
 * array of integers, 'o' what lines can't give, 't' the text itself.
 *
 * In a template "%%" is a per cent sign, and a conversion is a letter, then for all but 'w' a field's
 * index, '/' and a number, and perhaps '.' and the index of an array's element, then ';':
 *
 *   d x o  a decimal, a hexadecimal (with or without 0x), an octal number; the number is its width in bytes
 *   u      hexadecimal with 0x, decimal without
 *   b      "true" or "false"
 *   c      one byte, as it is
 *   a      the address of a probe: hexadecimal, or a symbol, which gives no value
 *   s      a string without quotes; the number is the most bytes it can have, 0 where that isn't known
 *   q      a string in quotes, or (fault) without them
 *   w      any text of the kernel's own
 *
 * Behind s, q and w there always stands a literal or the end. "%|" ends a template, too: another one for the
 * same kind of event follows, for lines that the first doesn't fit. */
#ifndef TRACEFAN_ROUTER_TEXT_TEMPLATE_H
#define TRACEFAN_ROUTER_TEXT_TEMPLATE_H

#include "shm/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the template of `binary`, whose field i is the text schema's map[i], or is left out where that is
 * negative. `*ret` is the caller's to free; NULL, with success, when the print format is not understood.
 * Returns 0 or -ENOMEM. */
int text_template_make(const struct schema *binary, const int32_t *map, char **ret);

/* One step of a template. */
struct text_step {
	char letter;       /* of a conversion, 'l': a literal, 0: the end, also before "%|" */
	const char *text;  /* the literal */
	size_t size;
	uint32_t field, number, element;
};

/* The template behind the "%|" of this one, or NULL. */
const char *text_template_next(const char *pattern);

/* Reads the step at `at` and returns where the next one begins. A template that text_template_make did
 * not write gives steps, too, and no harm. */
const char *text_template_step(const char *at, struct text_step *ret);

#endif
