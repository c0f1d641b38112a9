/* Foreign bytes as text that is safe to show and can be read back.
 *
 * JSON: the content of a string. A byte that is not part of valid UTF-8 becomes U+EF00 + byte (U+EF80 to
 * U+EFFF, of the private use area), and so do the three bytes of a real character from that range, so that
 * every such character in the output stands for one byte and the way back is unambiguous.
 *
 * Text: as it is when it is one word of printable characters, otherwise in double quotes with \\ \" \n \t
 * \r, and \xHH for each byte that isn't printable UTF-8.
 *
 * Not printable: control characters (C0, DEL, C1), line and paragraph separators, characters that change
 * the direction of writing. */
#ifndef TRACEFAN_CLI_ESCAPE_H
#define TRACEFAN_CLI_ESCAPE_H

#include "consumers/cli/writer.h"

#include <stddef.h>
#include <stdint.h>

/* The length (1 to 4) of the valid UTF-8 character at the start of `bytes`, 0 where there is none. */
unsigned int escape_character(const uint8_t *bytes, size_t size, uint32_t *ret_code);

void escape_json(struct writer *writer, const void *bytes, size_t size);
void escape_text(struct writer *writer, const void *bytes, size_t size);

/* Shows bytes that are nobody's value, a message or a column: like text, but never in quotes, and blanks,
 * quotes and backslashes stay as they are. Returns the columns written. */
size_t escape_plain(struct writer *writer, const void *bytes, size_t size);

#endif
