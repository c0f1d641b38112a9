#include "reader/setting.h"

#include "base/checked.h"
#include "shm/pool_abi.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct setting_name setting_names[SETTING_COUNT] = {
	[SETTING_GROUP] = { "session", "group", "--group" },
	[SETTING_ROUTER_USER] = { "session", "router-user", "--router-user" },
	[SETTING_POLICY] = { "session", "policy", "--policy" },
	[SETTING_CONFINEMENT] = { "session", "confinement", "--confinement" },
	[SETTING_POOL] = { "session", "pool", "--pool" },
	[SETTING_INTERVAL] = { "session", "interval", "--interval" },
	[SETTING_SOURCE] = { "kernel", "source", "--source" },
	[SETTING_BUFFER_SIZE] = { "kernel", "buffer-size", "--buffer-size" },
	[SETTING_SUBBUF_SIZE] = { "kernel", "subbuf-size", "--subbuf-size" },
	[SETTING_CLOCK] = { "kernel", "clock", NULL },
	[SETTING_TRACEFS] = { "kernel", "tracefs", "--tracefs" },
};

int setting_fail(struct options_error *error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(error->message, sizeof(error->message), format, ap);
	va_end(ap);
	return -EINVAL;
}

int setting_size(const char *text, uint64_t *ret)
{
	static const char units[] = "KMG";
	unsigned long long value;
	unsigned int shift = 0;
	const char *unit;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return -ERANGE;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || end[1])
			return -EINVAL;
		shift = 10 * (unsigned int)(unit - units + 1);
	}
	if (value > UINT64_MAX >> shift)
		return -ERANGE;
	*ret = (uint64_t)value << shift;
	return 0;
}

static int parse_size(const char *what, const char *text, uint64_t least, uint64_t most,
	uint64_t *ret, struct options_error *error)
{
	uint64_t value;
	int r = setting_size(text, &value);

	if (r == -EINVAL)
		return setting_fail(
			error, "%s takes bytes, or a number with K, M or G: \"%s\"", what, text);
	if (r < 0 || value < least || value > most)
		return setting_fail(error, "%s must lie between %llu and %llu bytes: \"%s\"", what,
			(unsigned long long)least, (unsigned long long)most, text);
	*ret = value;
	return 0;
}

int setting_number(const char *what, const char *text, unsigned long least, unsigned long most,
	unsigned long *ret, struct options_error *error)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || !isdigit((unsigned char)*text) || value < least || value > most)
		return setting_fail(error, "%s takes a number from %lu to %lu: \"%s\"", what, least,
			most, text);
	*ret = value;
	return 0;
}

static int parse_subbuf(
	const char *what, const char *text, uint64_t *ret, struct options_error *error)
{
	uint64_t size = 0;
	int r = parse_size(what, text, POOL_SLOT_SIZE_MIN, POOL_SLOT_SIZE_MAX, &size, error);

	if (!r && !is_power_of_two(size))
		return setting_fail(error, "%s takes a power of two: \"%s\"", what, text);
	if (!r)
		*ret = size;
	return r;
}

static int parse_source(
	const char *what, const char *text, enum options_source *ret, struct options_error *error)
{
	if (!strcmp(text, "raw"))
		*ret = OPTIONS_RAW;
	else if (!strcmp(text, "text"))
		*ret = OPTIONS_TEXT;
	else
		return setting_fail(error, "%s is raw or text: \"%s\"", what, text);
	return 0;
}

static int parse_interval(
	const char *what, const char *text, uint64_t *ret, struct options_error *error)
{
	unsigned long number = 0;
	int r = setting_number(what, text, 1, 10000, &number, error);

	if (!r)
		*ret = (uint64_t)number * 1000000;
	return r;
}

/* The merge compares the kernel's times with CLOCK_MONOTONIC, so a session has this clock or none.
 */
static int parse_clock(const char *what, const char *text, struct options_error *error)
{
	if (!strcmp(text, "mono"))
		return 0;
	return setting_fail(error,
		"%s can only be mono, whose times can be compared with the system's: \"%s\"", what,
		text);
}

static int parse_text(
	const char *what, const char *text, const char **ret, struct options_error *error)
{
	if (!*text)
		return setting_fail(error, "%s is empty", what);
	*ret = text;
	return 0;
}

int setting_parse(enum setting setting, const char *shown, const char *value,
	struct reader_options *options, struct options_error *ret_error)
{
	switch (setting) {
	case SETTING_GROUP:
		return parse_text(shown, value, &options->group, ret_error);
	case SETTING_ROUTER_USER:
		return parse_text(shown, value, &options->router_user, ret_error);
	case SETTING_POLICY:
		return parse_text(shown, value, &options->policy, ret_error);
	case SETTING_TRACEFS:
		return parse_text(shown, value, &options->tracefs, ret_error);
	case SETTING_CONFINEMENT:
		if (confine_mode_parse(value, &options->confinement) < 0)
			return setting_fail(
				ret_error, "%s is best-effort or require: \"%s\"", shown, value);
		return 0;
	case SETTING_POOL:
		return parse_size(
			shown, value, 4096, UINT64_C(1) << 32, &options->pool_size, ret_error);
	case SETTING_INTERVAL:
		return parse_interval(shown, value, &options->interval, ret_error);
	case SETTING_SOURCE:
		return parse_source(shown, value, &options->source, ret_error);
	case SETTING_BUFFER_SIZE:
		return parse_size(
			shown, value, 4096, UINT64_C(1) << 40, &options->buffer_size, ret_error);
	case SETTING_SUBBUF_SIZE:
		return parse_subbuf(shown, value, &options->subbuf_size, ret_error);
	case SETTING_CLOCK:
		return parse_clock(shown, value, ret_error);
	case SETTING_COUNT:
		break;
	}
	return -EINVAL;
}
