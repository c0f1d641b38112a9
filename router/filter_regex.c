#include "router/filter_regex.h"

#include "base/checked.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

/* Of one match, wherever in the text it begins: steps of the matcher, and kilobytes for its
 * backtracking. 20,000 steps take about half a millisecond. */
#define REGEX_STEPS_MAX 20000
#define REGEX_HEAP_MAX  256
#define REGEX_NEST_MAX  32

struct filter_regex {
	pcre2_code *code;
	pcre2_match_context *context;
	pcre2_match_data *data;
	uint64_t limited;
};

static const uint32_t options = PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C;

/* What would mean something else once the pattern stands inside another: see compile_bounded. */
static bool is_free_of_verbs(const char *pattern, size_t size)
{
	static const char *const recursions[] = { "(?R", "(?0", "\\g<0", "\\g'0" };

	for (size_t i = 0; i + 2 < size; i++) {
		if (pattern[i] == '(' && pattern[i + 1] == '*' && pattern[i + 2] >= 'A' &&
			pattern[i + 2] <= 'Z')
			return false;
		for (size_t j = 0; j < sizeof(recursions) / sizeof(recursions[0]); j++)
			if (size - i >= strlen(recursions[j]) &&
				!memcmp(pattern + i, recursions[j], strlen(recursions[j])))
				return false;
	}
	return true;
}

/* Sets regex->code; a failure's place counts from `skip` bytes into the pattern. */
static int compile(struct filter_regex *regex, const char *pattern, size_t size, uint32_t more,
	size_t skip, struct ast_piece piece, struct filter_failure *failure)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	PCRE2_UCHAR words[160] = "";
	size_t at = 0;
	int error;

	if (!context)
		return -ENOMEM;
	(void)pcre2_set_parens_nest_limit(context, REGEX_NEST_MAX);
	pcre2_code_free(regex->code);
	regex->code =
		pcre2_compile((PCRE2_SPTR)pattern, size, options | more, &error, &at, context);
	pcre2_compile_context_free(context);
	if (regex->code)
		return 0;
	if (error == PCRE2_ERROR_HEAP_FAILED || error == PCRE2_ERROR_NOMEMORY)
		return -ENOMEM;
	(void)pcre2_get_error_message(error, words, sizeof(words));
	at = at > skip ? at - skip : 0;
	at = at < piece.size ? at : piece.size;
	return filter_fail(failure, (struct ast_piece){ piece.at + (uint32_t)at, 1 },
		"regular expression: %s", (const char *)words);
}

/* PCRE2 counts its steps anew for each place in the text where a match may begin, so its limit
 * would be one per byte. With the search for that place made part of the pattern, and the whole
 * anchored, it is one. */
static int compile_bounded(struct filter_regex *regex, const char *text, struct ast_piece piece,
	struct filter_failure *failure)
{
	static const char before[] = "(?s:.*?)(?:";
	/* What may go on to the pattern's end is ended first: a quotation or, where a newline says
	 * nothing else, a comment of (?x). */
	static const char *const after[] = { "\\E)", "\n)" };
	const size_t head = sizeof(before) - 1;
	char pattern[FILTER_REGEX_MAX + sizeof(before) + sizeof("\\E)")];
	int error = -EINVAL;

	memcpy(pattern, before, head);
	memcpy(pattern + head, text + piece.at, piece.size);
	for (size_t i = 0; error == -EINVAL && i < ARRAY_SIZE(after); i++) {
		const size_t tail = strlen(after[i]);

		memcpy(pattern + head + piece.size, after[i], tail);
		error = compile(
			regex, pattern, head + piece.size + tail, PCRE2_ANCHORED, head, piece, failure);
	}
	return error;
}

static int compile_pattern(struct filter_regex *regex, const char *text, struct ast_piece piece,
	struct filter_failure *failure)
{
	uint32_t all = 0;
	int error;

	/* First as it stands, for its errors and to see whether `^` anchors it already. */
	error = compile(regex, text + piece.at, piece.size, 0, 0, piece, failure);
	if (error)
		return error;
	(void)pcre2_pattern_info(regex->code, PCRE2_INFO_ALLOPTIONS, &all);
	return all & PCRE2_ANCHORED ? 0 : compile_bounded(regex, text, piece, failure);
}

int filter_regex_create(const char *text, struct ast_piece piece, struct filter_regex **ret,
	struct filter_failure *failure)
{
	struct filter_regex *regex;
	int error;

	if (piece.size > FILTER_REGEX_MAX)
		return filter_fail(failure, piece, "a regular expression has at most %d bytes",
			FILTER_REGEX_MAX);
	if (!is_free_of_verbs(text + piece.at, piece.size))
		return filter_fail(failure, piece,
			"regular expression: verbs such as (*SKIP) and recursion are not allowed");
	regex = calloc(1, sizeof(*regex));
	if (!regex)
		return -ENOMEM;
	error = compile_pattern(regex, text, piece, failure);
	if (!error) {
		regex->context = pcre2_match_context_create(NULL);
		regex->data = regex->context ? pcre2_match_data_create(1, NULL) : NULL;
		if (!regex->data)
			error = -ENOMEM;
	}
	if (error) {
		filter_regex_release(regex);
		return error;
	}
	(void)pcre2_set_match_limit(regex->context, REGEX_STEPS_MAX);
	(void)pcre2_set_depth_limit(regex->context, REGEX_STEPS_MAX);
	(void)pcre2_set_heap_limit(regex->context, REGEX_HEAP_MAX);
	*ret = regex;
	return 0;
}

void filter_regex_release(struct filter_regex *regex)
{
	if (!regex)
		return;
	pcre2_match_data_free(regex->data);
	pcre2_match_context_free(regex->context);
	pcre2_code_free(regex->code);
	free(regex);
}

bool filter_regex_match(struct filter_regex *regex, const char *text, size_t size)
{
	int found =
		pcre2_match(regex->code, (PCRE2_SPTR)text, size, 0, 0, regex->data, regex->context);

	if (found < 0 && found != PCRE2_ERROR_NOMATCH)
		regex->limited++;
	return found >= 0;
}

uint64_t filter_regex_limited(const struct filter_regex *regex)
{
	return regex->limited;
}
