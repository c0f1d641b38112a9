#include "base/exit_status.h"
#include "base/log.h"
#include "base/process.h"
#include "router/router.h"
#include "shm/control_abi.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
	"Usage: tracefan-router --session NAME [OPTION]...\n"
	"Decodes the events that tracefan-reader moves out of the kernel and gives each consumer its own.\n"
	"\n"
	"  --session NAME    the session, as tracefan-reader was started with\n"
	"  --directory DIR   of the sessions' folders (default /run/tracefan)\n"
	"  --user USER       name or number of the user to become when started as root\n"
	"                    (default whom the session's reader expects)\n"
	"  --confinement HOW best-effort (default): go on where the kernel lacks seccomp or\n"
	"                    landlock, and say so; require: refuse\n"
	"  --record-fd N     also write a recording of the session to this open descriptor\n"
	"  -v, --verbose     say more on standard error\n"
	"  -h, --help        show this and exit\n"
	"  -V, --version     show the version and exit\n"
	"\n"
	"Exit status: 0 the session ended; 1 failed while running; 2 wrong usage; 3 not permitted;\n"
	"4 no such session; 7 another router serves it. See tracefan-router(8).\n";

static void become(struct router_options *options, uid_t uid, const struct passwd *user)
{
	options->uid = uid;
	/* A user of whom nobody knows has the group of the same number. */
	options->gid = user ? user->pw_gid : (gid_t)uid;
}

/* Whom the session's reader expects: it gave the router's socket to that user. */
static bool find_expected_user(struct router_options *options)
{
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s/%s/router.sock", options->directory, options->session);

	if (n < 0 || (size_t)n >= sizeof(path) || stat(path, &st) < 0)
		return false;
	become(options, st.st_uid, getpwuid(st.st_uid));
	return true;
}

static bool find_named_user(const char *name, struct router_options *options)
{
	const struct passwd *user = getpwnam(name);
	unsigned long number;
	char *end = NULL;

	if (user) {
		become(options, user->pw_uid, user);
		return true;
	}
	errno = 0;
	number = strtoul(name, &end, 10);
	if (*name < '0' || *name > '9' || *end || errno || number >= UINT32_MAX)
		return false;
	become(options, (uid_t)number, NULL);
	return true;
}

/* The user to become. Returns 0 or an exit status; logs why. */
static int find_user(const char *name, struct router_options *options)
{
	options->uid = getuid();
	options->gid = getgid();
	if (geteuid() != 0)
		return 0;
	if (name ? find_named_user(name, options) : find_expected_user(options))
		return 0;
	if (!name && (find_named_user("tracefan-router", options) || find_named_user("nobody", options)))
		return 0;
	log_error("no such user: %s", name ? name : "nobody");
	return EXIT_USAGE;
}

static int parse_number(const char *text, int *ret)
{
	char *end = NULL;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < 0 || value > 65535)
		return -EINVAL;
	*ret = (int)value;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "session", required_argument, NULL, 's' },
		{ "directory", required_argument, NULL, 'd' },
		{ "user", required_argument, NULL, 'u' },
		{ "record-fd", required_argument, NULL, 'r' },
		{ "confinement", required_argument, NULL, 'c' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	struct router_options options = { .directory = ROUTER_DIRECTORY_USUAL, .record_fd = -1 };
	const char *user = NULL;
	int option, status;

	if (process_fill_standard() < 0)
		return EXIT_FAILED;
	log_open("tracefan-router", LOG_NOTE);
	while ((option = getopt_long(argc, argv, "vhV", longs, NULL)) != -1) {
		switch (option) {
		case 's':
			options.session = optarg;
			break;
		case 'd':
			options.directory = optarg;
			break;
		case 'u':
			user = optarg;
			break;
		case 'r':
			if (parse_number(optarg, &options.record_fd) < 0) {
				log_error("--record-fd takes the number of an open descriptor, not '%s'", optarg);
				return EXIT_USAGE;
			}
			break;
		case 'c':
			if (confine_mode_parse(optarg, &options.confinement) < 0) {
				log_error("--confinement is best-effort or require, not '%s'", optarg);
				return EXIT_USAGE;
			}
			break;
		case 'v':
			log_open("tracefan-router", LOG_DEBUG);
			break;
		case 'h':
			(void)fputs(help, stdout);
			return EXIT_DONE;
		case 'V':
			(void)puts("tracefan-router " TRACEFAN_VERSION);
			return EXIT_DONE;
		default:
			return EXIT_USAGE;
		}
	}
	if (!options.session || optind != argc) {
		log_error(options.session ? "unexpected argument '%s'" : "--session NAME is missing", argv[optind]);
		return EXIT_USAGE;
	}
	status = find_user(user, &options);
	return status ? status : router_run(&options);
}
