#include "reader/config.h"

#include "base/checked.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PROBES           "probes"
#define CONFIG_PROBE_MAX 2048

/* A text on its way through libinih, which asks for it line by line and calls back for each key
 * before it asks for the next: so the line that was asked for last is the one that is meant. */
struct parse {
	const char *at, *end;
	int line;
	struct config *config;
	struct config_error *error;
	struct reader_options scratch; /* what a value is tried on */
	char probe[CONFIG_PROBE_MAX];  /* the definition of the last probe, of which more lines may
					  follow */
	bool indented;                 /* the line */
	bool failed;
};

__attribute__((format(printf, 3, 4))) static int fail(
	struct config_error *error, int line, const char *format, ...)
{
	va_list ap;

	error->line = line;
	va_start(ap, format);
	(void)vsnprintf(error->message, sizeof(error->message), format, ap);
	va_end(ap);
	return -EINVAL;
}

/* The first mistake is the one that is told. */
#define FAIL(parse, ...)                                                                           \
	do {                                                                                       \
		if (!(parse)->failed)                                                              \
			(void)fail((parse)->error, (parse)->line, __VA_ARGS__);                    \
		(parse)->failed = true;                                                            \
	} while (0)

static bool is_text(const char *line, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)line[i];

		if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f)
			return false;
	}
	return true;
}

static char *next_line(char *to, int room, void *stream)
{
	struct parse *parse = stream;
	const char *newline;
	size_t length;

	if (parse->at == parse->end || parse->failed)
		return NULL;
	newline = memchr(parse->at, '\n', (size_t)(parse->end - parse->at));
	length = (size_t)((newline ? newline : parse->end) - parse->at);
	parse->line++;
	if (length > CONFIG_LINE_MAX || length + 2 > (size_t)room)
		FAIL(parse, "the line has more than %d bytes", CONFIG_LINE_MAX);
	else if (!is_text(parse->at, length))
		FAIL(parse, "the line holds a control character");
	if (parse->failed)
		return NULL;
	parse->indented = length && (*parse->at == ' ' || *parse->at == '\t');
	memcpy(to, parse->at, length);
	to[length] = '\n';
	to[length + 1] = '\0';
	parse->at += length + (newline != NULL);
	return to;
}

/* All keys of a section, or all sections, for who looks for one. */
static void list_names(const char *section, char *text, size_t size)
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < SETTING_COUNT && length < size; i++) {
		const struct setting_name *name = &setting_names[i];
		bool first = i == 0 || strcmp(name->section, setting_names[i - 1].section) != 0;
		const char *word = section ? name->key : name->section;

		if (section ? strcmp(name->section, section) != 0 : !first)
			continue;
		length += (size_t)snprintf(
			text + length, size - length, "%s%s", length ? ", " : "", word);
	}
}

static void unknown(struct parse *parse, const char *section, const char *key)
{
	char names[160];

	for (size_t i = 0; i < SETTING_COUNT; i++) {
		if (strcmp(key, setting_names[i].key) != 0)
			continue;
		FAIL(parse, "%.50s belongs into the section [%s]", key, setting_names[i].section);
		return;
	}
	list_names(section, names, sizeof(names));
	if (*names) {
		FAIL(parse, "[%.30s] has no key \"%.50s\"; it has: %s", section, key, names);
		return;
	}
	list_names(NULL, names, sizeof(names));
	FAIL(parse, "no section is called [%.50s]; there are: %s, " PROBES, section, names);
}

static int find(const char *section, const char *key)
{
	for (int i = 0; i < SETTING_COUNT; i++) {
		if (!strcmp(setting_names[i].section, section) &&
			!strcmp(setting_names[i].key, key))
			return i;
	}
	return -1;
}

static struct standing *add_probe(struct parse *parse, const char *name)
{
	struct config *config = parse->config;
	struct standing *more;

	for (size_t i = 0; i < config->probe_count; i++) {
		if (strcmp(config->probes[i].create.name, name) != 0)
			continue;
		FAIL(parse, "the probe %s is defined in line %d, too", name,
			config->probes[i].line);
		return NULL;
	}
	if (config->probe_count == STANDING_MAX) {
		FAIL(parse, "more than %d probes", STANDING_MAX);
		return NULL;
	}
	more = realloc(config->probes, (config->probe_count + 1) * sizeof(*more));
	if (!more) {
		FAIL(parse, "out of memory");
		return NULL;
	}
	config->probes = more;
	more[config->probe_count] = (struct standing){ .target = -1, .line = parse->line };
	return &more[config->probe_count++];
}

/* A definition may go on in lines that begin with a blank, for each of which libinih calls with the
 * same name. */
static bool goes_on(const struct parse *parse, const char *name)
{
	const struct config *config = parse->config;

	return parse->indented && config->probe_count &&
	       !strcmp(config->probes[config->probe_count - 1].create.name, name);
}

static void take_probe(struct parse *parse, const char *name, const char *value)
{
	bool more = goes_on(parse, name);
	struct standing *probe = more ? &parse->config->probes[parse->config->probe_count - 1]
				      : add_probe(parse, name);
	size_t length = more ? strlen(parse->probe) : 0;
	struct options_error wrong;
	int line;

	if (!probe)
		return;
	line = probe->line;
	if (length + strlen(value) + 2 > sizeof(parse->probe)) {
		FAIL(parse, "the definition is too long");
		return;
	}
	(void)snprintf(parse->probe + length, sizeof(parse->probe) - length, "%s%s",
		more ? " " : "", value);
	if (standing_parse(name, parse->probe, probe, &wrong) < 0)
		FAIL(parse, "%s", wrong.message);
	probe->line = line;
}

/* 1: go on; what 0 would do (remember the line) is done here, too. */
static int take(void *user, const char *section, const char *key, const char *value)
{
	struct parse *parse = user;
	struct options_error wrong;
	int i = find(section, key);

	if (parse->failed)
		return 1;
	if (!strcmp(section, PROBES)) {
		take_probe(parse, key, value);
	} else if (i < 0) {
		unknown(parse, section, key);
	} else if (parse->config->values[i]) {
		FAIL(parse, "%s is set in line %d, too", key, parse->config->lines[i]);
	} else if (setting_parse((enum setting)i, key, value, &parse->scratch, &wrong) < 0) {
		FAIL(parse, "%s", wrong.message);
	} else {
		parse->config->lines[i] = parse->line;
		parse->config->values[i] = strdup(value);
		if (!parse->config->values[i])
			FAIL(parse, "out of memory");
	}
	return 1;
}

int config_parse(const char *text, size_t size, struct config *ret, struct config_error *ret_error)
{
	struct config config = { 0 };
	struct parse parse = {
		.at = text, .end = text + size, .config = &config, .error = ret_error
	};
	int r = ini_parse_stream(next_line, &parse, take, &parse);

	/* It goes on behind a line that it can't read, so that may come before what failed. */
	if (r != 0 && (!parse.failed || r < ret_error->line)) {
		parse.failed = true;
		(void)fail(ret_error, r > 0 ? r : 0, "neither [SECTION] nor KEY = VALUE");
	}
	if (parse.failed) {
		config_release(&config);
		return -EINVAL;
	}
	*ret = config;
	return 0;
}

void config_release(struct config *config)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		free(config->values[i]);
	for (size_t i = 0; i < config->probe_count; i++)
		(void)close_fd(config->probes[i].target);
	free(config->probes);
	*config = (struct config){ 0 };
}

/* ---- the file ---- */

static int check_file(int fd, uid_t owner, size_t *ret_size, struct config_error *error)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return fail(error, 0, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail(error, 0, "not a regular file");
	if ((st.st_uid != 0 && st.st_uid != owner) || st.st_mode & 022) {
		(void)fail(error, 0,
			"others than root may write it, and it says who may do what: chown it to "
			"root, and chmod go-w");
		return -EPERM;
	}
	if (st.st_size > CONFIG_SIZE_MAX)
		return fail(error, 0, "larger than %u bytes", CONFIG_SIZE_MAX);
	*ret_size = (size_t)st.st_size;
	return 0;
}

int config_read(const char *path, uid_t owner, struct config *ret, struct config_error *ret_error)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	CLEANUP_FREE char *text = NULL;
	size_t size = 0;
	ssize_t n;
	int r;

	if (fd < 0) {
		r = -errno;
		(void)fail(ret_error, 0, "%s", strerror(-r));
		return r;
	}
	r = check_file(fd, owner, &size, ret_error);
	if (r < 0)
		return r;
	text = malloc(size + 1);
	if (!text) {
		(void)fail(ret_error, 0, "out of memory");
		return -ENOMEM;
	}
	/* A file that is being written anew is short, and then wrong. */
	n = read(fd, text, size);
	if (n < 0)
		return fail(ret_error, 0, "%s", strerror(errno));
	return config_parse(text, (size_t)n, ret, ret_error);
}

/* ---- into the options ---- */

/* What a message calls a setting: where it comes from. */
static void origin(const struct config *config, const struct reader_options *options,
	enum setting setting, char *text, size_t size)
{
	if (options->given & (1U << setting))
		(void)snprintf(text, size, "%s", setting_names[setting].option);
	else if (config->values[setting])
		(void)snprintf(text, size, "%s (line %d)", setting_names[setting].key,
			config->lines[setting]);
	else
		(void)snprintf(text, size, "%s (by default)", setting_names[setting].key);
}

static int check(const struct config *config, const struct reader_options *options,
	struct config_error *error)
{
	char subbuf[64], buffer[64];

	if (options->input && config->values[SETTING_SOURCE])
		return fail(error, config->lines[SETTING_SOURCE],
			"source contradicts --replay, --text and --pages, which read a file "
			"instead "
			"of this kernel: leave one of them out");
	if (options->subbuf_size <= options->buffer_size)
		return 0;
	origin(config, options, SETTING_SUBBUF_SIZE, subbuf, sizeof(subbuf));
	origin(config, options, SETTING_BUFFER_SIZE, buffer, sizeof(buffer));
	return fail(error, 0,
		"%s is larger than %s: a buffer is made of sub-buffers, so make it the larger one",
		subbuf, buffer);
}

int config_apply(
	const struct config *config, struct reader_options *options, struct config_error *ret_error)
{
	struct options_error wrong;

	for (size_t i = 0; i < SETTING_COUNT; i++) {
		if (!config->values[i] || options->given & (1U << i))
			continue;
		if (i == SETTING_SOURCE && options->input)
			continue;
		if (setting_parse((enum setting)i, setting_names[i].key, config->values[i], options,
			    &wrong) < 0)
			return fail(ret_error, config->lines[i], "%s", wrong.message);
	}
	options->standing = config->probes;
	options->standing_count = config->probe_count;
	return check(config, options, ret_error);
}
