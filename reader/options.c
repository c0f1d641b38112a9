#include "reader/options.h"

#include "base/checked.h"
#include "shm/control_abi.h"
#include "shm/pool_abi.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char options_usage[] =
	"Usage: tracefan-reader --session NAME [OPTION]...\n"
	"Drains a tracefs instance of its own into shared memory for tracefan-router.\n"
	"\n"
	"      --session NAME      name of the session: letters, digits, '_' and '-'\n"
	"      --directory DIR     where the session's sockets live (default /run/tracefan)\n"
	"      --source raw|text   what to read from tracefs (default raw)\n"
	"      --buffer-size SIZE  kernel buffer of each CPU (default 8M)\n"
	"      --subbuf-size SIZE  the kernel's sub-buffers (default 16K)\n"
	"      --interval MS       pace of draining under load (default 4)\n"
	"      --pool SIZE         shared memory between reader and router (default 1M)\n"
	"      --group NAME        group that may attach (default tracefan, if it exists)\n"
	"      --router-user USER  who the router runs as (default tracefan-router, if it\n"
	"                          exists, else nobody)\n"
	"      --confinement HOW   best-effort (default): go on where the kernel lacks seccomp\n"
	"                          or landlock, and say so; require: refuse\n"
	"      --policy FILE       who may trace what (default /etc/tracefan/policy, if it\n"
	"                          exists); none: members of the group, tracepoints only\n"
	"      --tracefs PATH      where tracefs is mounted\n"
	"      --owner-fd N        end the session when descriptor N reaches its end\n"
	"      --replay FILE       replay a recording; needs neither root nor tracefs\n"
	"      --text FILE         replay an ftrace text log\n"
	"      --pages DIR         replay raw pages, laid out as in tracefs\n"
	"      --remove            remove what a killed run of the session left behind\n"
	"  -v, --verbose           say more\n"
	"  -h, --help              show this\n"
	"      --version           show the version\n"
	"\n"
	"Exit status: 0 done, 1 failed while running, 2 wrong usage, 3 not permitted,\n"
	"4 tracefs or a kernel feature is missing, 7 the session is held by another reader.\n";

enum options_code {
	CODE_SESSION = 256,
	CODE_DIRECTORY,
	CODE_SOURCE,
	CODE_BUFFER_SIZE,
	CODE_SUBBUF_SIZE,
	CODE_INTERVAL,
	CODE_POOL,
	CODE_GROUP,
	CODE_ROUTER_USER,
	CODE_CONFINEMENT,
	CODE_POLICY,
	CODE_TRACEFS,
	CODE_OWNER_FD,
	CODE_REPLAY,
	CODE_TEXT,
	CODE_PAGES,
	CODE_REMOVE,
	CODE_VERSION,
};

static const struct option long_options[] = {
	{ "session", required_argument, NULL, CODE_SESSION },
	{ "directory", required_argument, NULL, CODE_DIRECTORY },
	{ "source", required_argument, NULL, CODE_SOURCE },
	{ "buffer-size", required_argument, NULL, CODE_BUFFER_SIZE },
	{ "subbuf-size", required_argument, NULL, CODE_SUBBUF_SIZE },
	{ "interval", required_argument, NULL, CODE_INTERVAL },
	{ "pool", required_argument, NULL, CODE_POOL },
	{ "group", required_argument, NULL, CODE_GROUP },
	{ "router-user", required_argument, NULL, CODE_ROUTER_USER },
	{ "confinement", required_argument, NULL, CODE_CONFINEMENT },
	{ "policy", required_argument, NULL, CODE_POLICY },
	{ "tracefs", required_argument, NULL, CODE_TRACEFS },
	{ "owner-fd", required_argument, NULL, CODE_OWNER_FD },
	{ "replay", required_argument, NULL, CODE_REPLAY },
	{ "text", required_argument, NULL, CODE_TEXT },
	{ "pages", required_argument, NULL, CODE_PAGES },
	{ "remove", no_argument, NULL, CODE_REMOVE },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, CODE_VERSION },
	{ NULL, 0, NULL, 0 },
};

__attribute__((format(printf, 2, 3))) static int fail(
	struct options_error *error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(error->message, sizeof(error->message), format, ap);
	va_end(ap);
	return -EINVAL;
}

int options_size(const char *text, uint64_t *ret)
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

bool options_session_valid(const char *name)
{
	size_t n = 0;

	if (!isalpha((unsigned char)name[0]))
		return false;
	for (; name[n]; n++) {
		if (n >= CONTROL_SESSION_MAX)
			return false;
		if (!isalnum((unsigned char)name[n]) && name[n] != '_' && name[n] != '-')
			return false;
	}
	return true;
}

static int parse_size(const char *what, const char *text, uint64_t least, uint64_t most,
	uint64_t *ret, struct options_error *error)
{
	uint64_t value;
	int r = options_size(text, &value);

	if (r == -EINVAL)
		return fail(
			error, "%s takes bytes, or a number with K, M or G: \"%s\"", what, text);
	if (r < 0 || value < least || value > most)
		return fail(error, "%s must lie between %llu and %llu bytes: \"%s\"", what,
			(unsigned long long)least, (unsigned long long)most, text);
	*ret = value;
	return 0;
}

static int parse_number(const char *what, const char *text, unsigned long least, unsigned long most,
	unsigned long *ret, struct options_error *error)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || !isdigit((unsigned char)*text) || value < least || value > most)
		return fail(error, "%s takes a number from %lu to %lu: \"%s\"", what, least, most,
			text);
	*ret = value;
	return 0;
}

static int parse_subbuf(
	const char *text, struct reader_options *options, struct options_error *error)
{
	int r = parse_size("--subbuf-size", text, POOL_SLOT_SIZE_MIN, POOL_SLOT_SIZE_MAX,
		&options->subbuf_size, error);

	if (!r && !is_power_of_two(options->subbuf_size))
		return fail(error, "--subbuf-size takes a power of two: \"%s\"", text);
	return r;
}

/* One source only: a second one contradicts the first. */
static int set_source(struct reader_options *options, bool *chosen, enum options_source source,
	const char *input, struct options_error *error)
{
	if (*chosen)
		return fail(error, "--source, --replay, --text and --pages exclude each other");
	*chosen = true;
	options->source = source;
	options->input = input;
	return 0;
}

static int parse_source(
	struct reader_options *options, bool *chosen, const char *text, struct options_error *error)
{
	if (!strcmp(text, "raw"))
		return set_source(options, chosen, OPTIONS_RAW, NULL, error);
	if (!strcmp(text, "text"))
		return set_source(options, chosen, OPTIONS_TEXT, NULL, error);
	return fail(error, "--source is raw or text: \"%s\"", text);
}

static int parse_value(
	int code, const char *value, struct reader_options *options, struct options_error *error)
{
	unsigned long number = 0;
	int r = 0;

	switch (code) {
	case CODE_SESSION:
		options->session = value;
		break;
	case CODE_DIRECTORY:
		options->directory = value;
		break;
	case CODE_BUFFER_SIZE:
		return parse_size("--buffer-size", value, 4096, UINT64_C(1) << 40,
			&options->buffer_size, error);
	case CODE_SUBBUF_SIZE:
		return parse_subbuf(value, options, error);
	case CODE_POOL:
		return parse_size(
			"--pool", value, 4096, UINT64_C(1) << 32, &options->pool_size, error);
	case CODE_INTERVAL:
		r = parse_number("--interval", value, 1, 10000, &number, error);
		if (!r)
			options->interval = (uint64_t)number * 1000000;
		break;
	case CODE_OWNER_FD:
		r = parse_number("--owner-fd", value, 0, INT_MAX, &number, error);
		if (!r)
			options->owner_fd = (int)number;
		break;
	case CODE_GROUP:
		options->group = value;
		break;
	case CODE_ROUTER_USER:
		options->router_user = value;
		break;
	case CODE_CONFINEMENT:
		if (confine_mode_parse(value, &options->confinement) < 0)
			return fail(error, "--confinement is best-effort or require: \"%s\"", value);
		break;
	case CODE_POLICY:
		options->policy = value;
		break;
	case CODE_TRACEFS:
		options->tracefs = value;
		break;
	default:
		return fail(error, "unknown option; --help shows them all");
	}
	return r;
}

static int parse_one(
	int code, struct reader_options *options, bool *chosen, struct options_error *error)
{
	switch (code) {
	case CODE_SOURCE:
		return parse_source(options, chosen, optarg, error);
	case CODE_REPLAY:
		return set_source(options, chosen, OPTIONS_REPLAY, optarg, error);
	case CODE_TEXT:
		return set_source(options, chosen, OPTIONS_TEXT_FILE, optarg, error);
	case CODE_PAGES:
		return set_source(options, chosen, OPTIONS_PAGES, optarg, error);
	case CODE_REMOVE:
		options->action = OPTIONS_REMOVE;
		return 0;
	case CODE_VERSION:
		options->action = OPTIONS_VERSION;
		return 0;
	case 'h':
		options->action = OPTIONS_HELP;
		return 0;
	case 'v':
		options->verbose = true;
		return 0;
	default:
		return parse_value(code, optarg, options, error);
	}
}

int options_parse(
	int argc, char *const argv[], struct reader_options *ret, struct options_error *ret_error)
{
	struct reader_options options = {
		.directory = "/run/tracefan",
		.buffer_size = UINT64_C(8) << 20,
		.pool_size = UINT64_C(1) << 20,
		.interval = 4000000,
		.owner_fd = -1,
	};
	bool chosen = false;
	int code, r;

	/* 0 makes getopt start anew, so that tests can parse many command lines. */
	optind = 0;
	opterr = 0;
	while ((code = getopt_long(argc, argv, ":vh", long_options, NULL)) >= 0) {
		if (code == ':')
			return fail(ret_error, "%s needs a value", argv[optind - 1]);
		if (code == '?')
			return fail(ret_error, "unknown option %s; --help shows them all",
				argv[optind - 1]);
		r = parse_one(code, &options, &chosen, ret_error);
		if (r < 0)
			return r;
	}
	if (options.action == OPTIONS_HELP || options.action == OPTIONS_VERSION) {
		*ret = options;
		return 0;
	}
	if (optind < argc)
		return fail(ret_error, "unexpected argument \"%s\"", argv[optind]);
	if (!options.session)
		return fail(ret_error, "--session is missing");
	if (!options_session_valid(options.session))
		return fail(ret_error,
			"a session's name has at most %d letters, digits, '_' and '-', a letter "
			"first: \"%s\"",
			CONTROL_SESSION_MAX, options.session);
	*ret = options;
	return 0;
}
