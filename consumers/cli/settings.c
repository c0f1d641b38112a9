#include "consumers/cli/settings.h"

#include "consumers/cli/near_name.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What of the reader's options is a session's setting; their values are the reader's to judge. */
static const char *const settings_keys[] = {
	"source", "buffer-size", "subbuf-size", "interval", "pool", "group", "policy", "router-user",
};

#define SETTINGS_KEYS (sizeof(settings_keys) / sizeof(settings_keys[0]))

__attribute__((format(printf, 2, 3))) static int wrong(struct settings_error *error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(error->message, sizeof(error->message), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static int settings_unknown(const char *key, struct settings_error *error)
{
	struct near_name near;

	near_name_init(&near, key);
	for (size_t i = 0; i < SETTINGS_KEYS; i++)
		near_name_offer(&near, settings_keys[i]);
	if (near.best)
		return wrong(error, "no setting is called '%.40s'; did you mean %s?", key, near.best);
	return wrong(error, "no setting is called '%.40s'", key);
}

static int settings_add(struct settings *settings, const char *key, const char *value, struct settings_error *error)
{
	size_t i = 0;

	while (i < SETTINGS_KEYS && strcmp(settings_keys[i], key) != 0)
		i++;
	if (i == SETTINGS_KEYS)
		return settings_unknown(key, error);
	for (i = 0; i < settings->count; i++) {
		const char *other = settings->words[i] + 2;

		if (strncmp(other, key, strlen(key)) == 0 && other[strlen(key)] == '=')
			return wrong(error, "%s is set twice", key);
	}
	if (settings->count == SETTINGS_MAX)
		return wrong(error, "more than %d settings", SETTINGS_MAX);
	if (asprintf(&settings->words[settings->count], "--%s=%s", key, value) < 0) {
		settings->words[settings->count] = NULL;
		(void)wrong(error, "out of memory");
		return -ENOMEM;
	}
	settings->count++;
	return 0;
}

/* Cuts blanks off both ends, in place. */
static char *settings_trim(char *text)
{
	size_t length;

	text += strspn(text, " \t\r");
	length = strlen(text);
	while (length > 0 && strchr(" \t\r", text[length - 1]))
		text[--length] = '\0';
	return text;
}

int settings_line(struct settings *settings, const char *line, struct settings_error *ret_error)
{
	size_t length = strlen(line);
	char copy[512], *value;
	char *key;

	if (length >= sizeof(copy))
		return wrong(ret_error, "the line is too long");
	memcpy(copy, line, length + 1);
	copy[strcspn(copy, "#")] = '\0';
	key = settings_trim(copy);
	if (!*key)
		return 0;
	value = strchr(key, '=');
	if (!value)
		return wrong(ret_error, "not KEY = VALUE");
	*value++ = '\0';
	return settings_add(settings, settings_trim(key), settings_trim(value), ret_error);
}

static int settings_lines(FILE *file, struct settings *settings, struct settings_error *error)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int r = 0;

	for (error->line = 1; r == 0 && (length = getline(&line, &room, file)) >= 0; error->line += r == 0) {
		if (length > 0 && line[length - 1] == '\n')
			line[length - 1] = '\0';
		r = settings_line(settings, line, error);
	}
	free(line);
	if (r == 0 && ferror(file)) {
		error->line = 0;
		(void)wrong(error, "%s", strerror(errno));
		return -EIO;
	}
	return r;
}

int settings_read(const char *path, struct settings *ret, struct settings_error *ret_error)
{
	struct settings settings = { 0 };
	FILE *file = fopen(path, "re");
	int r;

	ret_error->line = 0;
	if (!file) {
		r = -errno;
		(void)wrong(ret_error, "%s", strerror(-r));
		return r;
	}
	r = settings_lines(file, &settings, ret_error);
	(void)fclose(file);
	if (r < 0) {
		settings_release(&settings);
		return r;
	}
	*ret = settings;
	return 0;
}

void settings_release(struct settings *settings)
{
	for (size_t i = 0; i < settings->count; i++)
		free(settings->words[i]);
	*settings = (struct settings){ 0 };
}
