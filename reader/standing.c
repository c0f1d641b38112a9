#include "reader/standing.h"

#include "base/checked.h"
#include "reader/setting.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t"

static const struct {
	const char *word;
	enum control_probe_kind kind;
	bool in_file;
} kinds[] = {
	{ "kprobe", PROBE_KPROBE, false },
	{ "kretprobe", PROBE_KRETPROBE, false },
	{ "uprobe", PROBE_UPROBE, true },
	{ "uretprobe", PROBE_URETPROBE, true },
};

static int parse_name(const char *name, struct control_create *create, struct options_error *error)
{
	if (!*name)
		return setting_fail(error, "the probe has no name");
	for (const char *c = name; *c; c++) {
		if (!isascii(*c) || (!isalnum((unsigned char)*c) && *c != '_'))
			return setting_fail(
				error, "a probe's name has letters, digits and '_': \"%s\"", name);
	}
	if (strlen(name) >= sizeof(create->name))
		return setting_fail(error, "the probe's name has more than %zu letters",
			sizeof(create->name) - 1);
	memcpy(create->name, name, strlen(name) + 1);
	return 0;
}

static int parse_offset(const char *text, uint64_t *ret, struct options_error *error)
{
	char *end;
	unsigned long long offset;

	errno = 0;
	offset = strtoull(text, &end, 0);
	if (errno || *end || !isdigit((unsigned char)*text))
		return setting_fail(error, "not an offset: \"%s\"", text);
	*ret = offset;
	return 0;
}

/* PATH:0xOFFSET; a path may hold colons. */
static int parse_in_file(char *place, struct control_create *create, struct options_error *error)
{
	char *colon = strrchr(place, ':');

	if (place[0] != '/' || !colon)
		return setting_fail(error,
			"a place in a file is /PATH:0xOFFSET, in bytes of the file: \"%s\"", place);
	*colon = '\0';
	if (strlen(place) >= sizeof(create->path))
		return setting_fail(error, "the path is too long");
	memcpy(create->path, place, strlen(place) + 1);
	return parse_offset(colon + 1, &create->offset, error);
}

/* SYMBOL[+OFFSET] */
static int parse_in_kernel(char *place, struct control_create *create, struct options_error *error)
{
	char *plus = strchr(place, '+');
	int r = 0;

	if (plus) {
		*plus = '\0';
		r = parse_offset(plus + 1, &create->offset, error);
	}
	if (r == 0 && (!*place || strlen(place) >= sizeof(create->symbol)))
		return setting_fail(error, "a place in the kernel is SYMBOL[+OFFSET]");
	if (r == 0)
		memcpy(create->symbol, place, strlen(place) + 1);
	return r;
}

static int parse_place(char *word, struct control_create *create, struct options_error *error)
{
	char *colon = strchr(word, ':');
	size_t length = colon ? (size_t)(colon - word) : strlen(word);

	for (size_t i = 0; colon && i < ARRAY_SIZE(kinds); i++) {
		if (strlen(kinds[i].word) != length || strncmp(word, kinds[i].word, length) != 0)
			continue;
		create->kind = kinds[i].kind;
		return kinds[i].in_file ? parse_in_file(colon + 1, create, error)
					: parse_in_kernel(colon + 1, create, error);
	}
	return setting_fail(error,
		"a probe is kprobe:, kretprobe:, uprobe: or uretprobe: and its place: \"%s\"",
		word);
}

static int add_argument(
	const char *word, size_t *at, struct control_create *create, struct options_error *error)
{
	size_t length = strlen(word) + 1;
	const char *equals = strchr(word, '=');

	if (!equals || equals == word || !equals[1])
		return setting_fail(error, "an argument is NAME=FETCH[:TYPE]: \"%s\"", word);
	if (length > sizeof(create->fetch) - *at)
		return setting_fail(error, "the arguments are too long");
	memcpy(create->fetch + *at, word, length);
	*at += length;
	create->fetch_count++;
	return 0;
}

int standing_parse(
	const char *name, const char *text, struct standing *ret, struct options_error *ret_error)
{
	struct control_create *create = &ret->create;
	char copy[4096], *word, *next = NULL;
	size_t at = 0;
	int r;

	*ret = (struct standing){ .target = -1 };
	if (strlen(text) >= sizeof(copy))
		return setting_fail(ret_error, "the definition is too long");
	memcpy(copy, text, strlen(text) + 1);
	r = parse_name(name, create, ret_error);
	if (r < 0)
		return r;
	word = strtok_r(copy, BLANKS, &next);
	r = word ? parse_place(word, create, ret_error)
		 : setting_fail(ret_error, "the probe \"%s\" has no definition", name);
	while (r == 0 && (word = strtok_r(NULL, BLANKS, &next)))
		r = add_argument(word, &at, create, ret_error);
	return r;
}

const struct standing *standing_find(
	const struct standing *standing, size_t count, const struct control_create *create)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(standing[i].create.name, create->event))
			return &standing[i];
	}
	return NULL;
}

int standing_open(struct standing *standing)
{
	if (!*standing->create.path)
		return 0;
	standing->target =
		open(standing->create.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return standing->target < 0 ? -errno : 0;
}
