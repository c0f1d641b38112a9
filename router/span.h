/* A piece of C text, as the kernel's print formats are: what its readers step over. Pure. */
#ifndef TRACEFAN_ROUTER_SPAN_H
#define TRACEFAN_ROUTER_SPAN_H

#include <stdbool.h>

/* [at, end). */
struct span {
	const char *at, *end;
};

static inline bool span_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static inline bool span_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool span_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool span_is_word(char c)
{
	return span_is_letter(c) || span_is_digit(c);
}

void span_skip_blanks(struct span *s);
/* Without blanks at both ends. */
struct span span_trim(struct span s);
/* Takes `word` if it stands at s->at. */
bool span_take(struct span *s, const char *word);
/* Moves past a string or character constant that begins at s->at. */
void span_skip_quoted(struct span *s);
/* Moves to the first `stop` outside constants and all brackets, or the first closing bracket that was not opened, or the end. */
void span_skip_to(struct span *s, char stop);
/* Takes the next argument: from behind a comma to the next one. */
bool span_argument(struct span *s, struct span *ret);

#endif
