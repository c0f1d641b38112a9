#include "reader/options.h"

#include "base/exit_status.h"

#include "base/checked.h"
#include "reader/setting.h"
#include "shm/control_abi.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char options_usage[] =
	"Usage: tracefan-reader --session NAME [OPTION]...\n"
	"Drains a tracefs instance of its own into shared memory for tracefan-router.\n"
	"\n"
	"      --session NAME      name of the session: letters, digits, '_' and '-'\n"
	"  -c, --config FILE       settings, see tracefan.conf(5); options go before them\n"
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
	CODE_OWNER_FD,
	CODE_REPLAY,
	CODE_TEXT,
	CODE_PAGES,
	CODE_REMOVE,
	CODE_VERSION,
	CODE_SETTING = 512, /* + enum setting */
};

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "session", required_argument, NULL, CODE_SESSION },
	{ "directory", required_argument, NULL, CODE_DIRECTORY },
	{ "source", required_argument, NULL, CODE_SETTING + SETTING_SOURCE },
	{ "buffer-size", required_argument, NULL, CODE_SETTING + SETTING_BUFFER_SIZE },
	{ "subbuf-size", required_argument, NULL, CODE_SETTING + SETTING_SUBBUF_SIZE },
	{ "interval", required_argument, NULL, CODE_SETTING + SETTING_INTERVAL },
	{ "pool", required_argument, NULL, CODE_SETTING + SETTING_POOL },
	{ "group", required_argument, NULL, CODE_SETTING + SETTING_GROUP },
	{ "router-user", required_argument, NULL, CODE_SETTING + SETTING_ROUTER_USER },
	{ "confinement", required_argument, NULL, CODE_SETTING + SETTING_CONFINEMENT },
	{ "policy", required_argument, NULL, CODE_SETTING + SETTING_POLICY },
	{ "tracefs", required_argument, NULL, CODE_SETTING + SETTING_TRACEFS },
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

/* One source only: a second one contradicts the first. */
static int choose(const char **chosen, const char *option, struct options_error *error)
{
	if (*chosen)
		return setting_fail(error, "%s and %s exclude each other: a session has one source", *chosen, option);
	*chosen = option;
	return 0;
}

static int parse_setting(enum setting setting, struct reader_options *options, const char **chosen,
	struct options_error *error)
{
	int r = setting == SETTING_SOURCE ? choose(chosen, "--source", error) : 0;

	options->given |= 1U << setting;
	return r ? r
		 : setting_parse(setting, setting_names[setting].option, optarg, options, error);
}

static int set_input(struct reader_options *options, const char **chosen, const char *option,
	enum options_source source, struct options_error *error)
{
	options->source = source;
	options->input = optarg;
	return choose(chosen, option, error);
}

static int parse_owner(struct reader_options *options, struct options_error *error)
{
	unsigned long number = 0;
	int r = setting_number("--owner-fd", optarg, 0, INT_MAX, &number, error);

	if (!r)
		options->owner_fd = (int)number;
	return r;
}

static int parse_one(
	int code, struct reader_options *options, const char **chosen, struct options_error *error)
{
	switch (code) {
	case CODE_SESSION:
		options->session = optarg;
		return 0;
	case CODE_DIRECTORY:
		options->directory = optarg;
		return 0;
	case CODE_OWNER_FD:
		return parse_owner(options, error);
	case CODE_REPLAY:
		return set_input(options, chosen, "--replay", OPTIONS_REPLAY, error);
	case CODE_TEXT:
		return set_input(options, chosen, "--text", OPTIONS_TEXT_FILE, error);
	case CODE_PAGES:
		return set_input(options, chosen, "--pages", OPTIONS_PAGES, error);
	case CODE_REMOVE:
		options->action = OPTIONS_REMOVE;
		return 0;
	case CODE_VERSION:
		options->action = OPTIONS_VERSION;
		return 0;
	case 'c':
		options->config = optarg;
		return 0;
	case 'h':
		options->action = OPTIONS_HELP;
		return 0;
	case 'v':
		options->verbose = true;
		return 0;
	default:
		return parse_setting((enum setting)(code - CODE_SETTING), options, chosen, error);
	}
}

int options_parse(
	int argc, char *const argv[], struct reader_options *ret, struct options_error *ret_error)
{
	struct reader_options options = {
		.directory = OPTIONS_DIRECTORY_USUAL,
		.buffer_size = UINT64_C(8) << 20,
		.pool_size = UINT64_C(1) << 20,
		.interval = 4000000,
		.owner_fd = -1,
	};
	const char *chosen = NULL;
	int code, r;

	/* 0 makes getopt start anew, so that tests can parse many command lines. */
	optind = 0;
	opterr = 0;
	while ((code = getopt_long(argc, argv, ":vhc:", long_options, NULL)) >= 0) {
		if (code == ':')
			return setting_fail(ret_error, "%s needs a value", argv[optind - 1]);
		if (code == '?')
			return setting_fail(ret_error, "unknown option %s; --help shows them all",
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
		return setting_fail(ret_error, "unexpected argument \"%s\"", argv[optind]);
	if (!options.session)
		return setting_fail(ret_error, "--session is missing");
	if (!options_session_valid(options.session))
		return setting_fail(ret_error,
			"a session's name has at most %d letters, digits, '_' and '-', a letter "
			"first: \"%s\"",
			CONTROL_SESSION_MAX, options.session);
	*ret = options;
	return 0;
}

int options_file_status(int error)
{
	switch (error) {
	case -EACCES:
	case -EPERM:
		return EXIT_NOT_PERMITTED;
	case -ENOMEM:
	case -EIO:
		return EXIT_FAILED;
	default:
		return EXIT_USAGE;
	}
}
