/* What tracefan says about itself, on standard error: one line each, "tracefan: ...". Control characters in
 * names from outside can't reach the terminal. */
#ifndef TRACEFAN_CLI_MESSAGE_H
#define TRACEFAN_CLI_MESSAGE_H

#include "consumers/client/tracefan.h"

__attribute__((format(printf, 1, 2))) void message(const char *format, ...);

/* A word that the user gave, for a message. Of a long one its beginning and its length, so that what is said of it is
 * still seen. */
struct message_word {
	char text[288];
};
struct message_word message_word(const char *word);

/* A message about a place in a text that the user gave, with the place marked below it; without a mark when
 * position is -1 or outside the text. Of a long text what is around the place is shown. */
void message_at(const char *text, int position, const char *what);

/* Tells the library's failure; `text` is what the user gave for it, or NULL. Returns its exit status. */
int message_failure(const struct tfan_failure *failure, const char *text);

/* Tells the negative errno of a write to standard output, if it is one. Who reads a pipe may leave when they have seen enough.
 * Returns the exit status that it means. */
int message_output(int error);

#endif
