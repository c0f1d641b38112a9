#include "consumers/cli/verb.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"
#include "consumers/cli/monotonic.h"
#include "consumers/cli/near_name.h"
#include "consumers/cli/options.h"
#include "consumers/cli/output_file.h"
#include "consumers/cli/private_session.h"
#include "consumers/cli/session_list.h"
#include "consumers/client/tracefan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ns: the kernel's grace periods for each probe, and a router that waits for consumers to leave. */
#define SESSION_REMOVE_PATIENCE (120 * MONOTONIC_SECOND)
/* ms, for one session of a list. */
#define SESSION_LOOK_PATIENCE 2000U

static const char *session_directory(const struct options *options)
{
	return options->directory ? options->directory : SESSION_LIST_DIRECTORY;
}

/* ---- start ---- */

/* Where the daemons' messages go once nobody stands at a terminal for them. */
static void session_log_path(const struct options *options, char *path, size_t size)
{
	(void)snprintf(path, size, "%s/%s.log", session_directory(options), options->session);
}

/* Others have to get through to the sockets, whatever the umask is here. */
static int session_make_directory(const char *path)
{
	if (mkdir(path, 0755) < 0)
		return errno == EEXIST ? 0 : -1;
	return chmod(path, 0755);
}

/* *ret_new: the file was not there; one that was may be a running session's. Returns the descriptor or -errno. */
static int session_open_log(const char *path, bool *ret_new)
{
	const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
	int fd = open(path, flags | O_EXCL, 0644);

	*ret_new = fd >= 0;
	if (fd >= 0)
		(void)fchmod(fd, 0644);
	if (fd < 0 && errno == EEXIST)
		fd = open(path, flags, 0644);
	return fd < 0 ? -errno : fd;
}

/* One starts a session at a time: two would each take what the other has made so far for one whose other daemon has
 * died, and end it when theirs is one too many. The lock is fcntl(2)'s, which the daemons don't inherit. Returns 1, 0
 * (to be opened again) or -errno; -EBUSY with who has it. */
static int session_lock_log(int fd, const char *path, pid_t *ret_holder)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat held, named;

	*ret_holder = 0;
	if (fcntl(fd, F_SETLK, &lock) < 0) {
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
		if (fcntl(fd, F_GETLK, &lock) < 0)
			return -errno;
		*ret_holder = lock.l_pid;
		return lock.l_type == F_UNLCK ? 0 : -EBUSY;
	}
	if (fstat(fd, &held) < 0)
		return -errno;
	return stat(path, &named) == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

/* The log, held until it is closed. Returns the descriptor, or an exit status, negated, with everything said. */
static int session_take_log(const struct options *options, const char *path, bool *ret_new)
{
	pid_t holder;
	int fd, r;

	if (session_make_directory(session_directory(options)) < 0)
		return -output_file_refused(session_directory(options), errno);
	for (;;) {
		fd = session_open_log(path, ret_new);
		if (fd < 0)
			return -output_file_refused(path, -fd);
		r = session_lock_log(fd, path, &holder);
		if (r == 1)
			return fd;
		(void)close(fd);
		if (r == -EBUSY) {
			message("session \"%s\" is being started or stopped already, by process %d", options->session, (int)holder);
			return -EXIT_BUSY;
		}
		if (r < 0)
			return -output_file_refused(path, -r);
	}
}

/* What the daemons said since `from`, for whoever waits for them at the terminal. */
static void session_show_log(int log, off_t from)
{
	char text[4096];
	ssize_t n;

	while ((n = pread(log, text, sizeof(text), from)) > 0) {
		(void)!write(STDERR_FILENO, text, (size_t)n);
		from += n;
	}
}

static int session_start_with(const struct options *options, struct private_session_config *config)
{
	struct private_session session = PRIVATE_SESSION_NONE;
	char path[PATH_MAX];
	bool new = false;
	off_t from;
	int status;

	session_log_path(options, path, sizeof(path));
	config->errors = session_take_log(options, path, &new);
	if (config->errors < 0)
		return -config->errors;
	from = lseek(config->errors, 0, SEEK_END);
	status = private_session_start(&session, config);
	session_show_log(config->errors, from);
	if (status == 0)
		private_session_leave(&session);
	else if (new)
		(void)unlink(path);
	(void)close(config->errors);
	return status;
}

static int session_start(const struct options *options)
{
	struct private_session_config config = PRIVATE_SESSION_LIVE;

	if (geteuid() != 0) {
		message("starting a session needs root: run it with sudo");
		return EXIT_NOT_PERMITTED;
	}
	/* The name becomes part of a path before the reader has looked at it. */
	if (strchr(options->session, '/') || options->session[0] == '.' || strlen(options->session) > 32) {
		message("'%s' is no name of a session: letters, digits, '_' and '-', at most 32, a letter first",
			message_word(options->session).text);
		return EXIT_USAGE;
	}
	config.name = options->session;
	config.directory = options->directory;
	config.policy = options->policy;
	config.config = options->config;
	return session_start_with(options, &config);
}

/* ---- the rest ---- */

static int session_operate(const struct options *options, int (*request)(struct tfan_operator *control))
{
	struct tfan_operator *control;
	int status = EXIT_DONE;

	if (tfan_operator_open(options->directory, options->session, &control) < 0 || request(control) < 0)
		status = message_failure(control ? tfan_operator_failure(control) : NULL, NULL);
	tfan_operator_close(control);
	return status;
}

/* Nobody answers where the reader is dead: then what is there of the session is removed from here. */
static int session_end(const struct options *options)
{
	struct tfan_operator *control;
	const struct tfan_failure *failure;
	int status = EXIT_DONE, rc = tfan_operator_open(options->directory, options->session, &control);

	failure = control ? tfan_operator_failure(control) : NULL;
	if (rc < 0 && failure && failure->error == ECONNREFUSED)
		status = private_session_remove(options->session, session_directory(options), SESSION_REMOVE_PATIENCE);
	else if (rc < 0 || tfan_operator_stop(control) < 0)
		status = message_failure(failure, NULL);
	tfan_operator_close(control);
	return status;
}

static int session_stop(const struct options *options)
{
	char path[PATH_MAX];
	pid_t holder;
	bool held;
	int log, status;

	session_log_path(options, path, sizeof(path));
	log = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	/* Another's who starts the session meanwhile is left to that one. */
	held = log >= 0 && session_lock_log(log, path, &holder) == 1;
	status = session_end(options);
	if (status == EXIT_DONE && held)
		(void)unlink(path);
	if (log >= 0)
		(void)close(log);
	return status;
}

static int session_flush(const struct options *options)
{
	return session_operate(options, tfan_operator_flush);
}

/* Who may operate it sees its control socket, who may attach asks the router; others don't know. */
static bool session_is_dead(const struct options *options, const char *name)
{
	struct tfan_options look = TFAN_OPTIONS;
	struct tfan_operator *control;
	struct tfan *tfan = NULL;
	int rc = tfan_operator_open(options->directory, name, &control);

	tfan_operator_close(control);
	if (rc == 0 || rc == -ECONNREFUSED)
		return rc != 0;
	look.session = name;
	look.directory = options->directory;
	look.program = "tracefan";
	look.patience = SESSION_LOOK_PATIENCE;
	look.only_look = true;
	rc = tfan_open(&look, &tfan);
	rc = rc == -ECONNREFUSED || (rc == 0 && tfan_is_readerless(tfan));
	tfan_close(tfan);
	return rc;
}

static int session_list(const struct options *options)
{
	struct session_list list;
	int r = session_list_read(session_directory(options), &list);

	if (r < 0) {
		message("%s: %s", session_directory(options), strerror(-r));
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < list.count; i++)
		(void)printf("%s%s\n", list.names[i], session_is_dead(options, list.names[i]) ? ": its reader is dead" : "");
	session_list_release(&list);
	return EXIT_DONE;
}

static const struct {
	const char *name;
	int (*run)(const struct options *options);
} session_actions[] = {
	{ "start", session_start },
	{ "stop", session_stop },
	{ "flush", session_flush },
	{ "list", session_list },
};

#define SESSION_ACTIONS (sizeof(session_actions) / sizeof(session_actions[0]))

static int session_act(const struct options *options)
{
	struct near_name near;

	near_name_init(&near, options->action);
	for (size_t i = 0; i < SESSION_ACTIONS; i++) {
		if (strcmp(options->action, session_actions[i].name) == 0)
			return session_actions[i].run(options);
		near_name_offer(&near, session_actions[i].name);
	}
	if (near.best)
		message("a session can't be told to '%s'; did you mean %s?", message_word(options->action).text, near.best);
	else
		message("a session can't be told to '%s', but start, stop, flush and list",
			message_word(options->action).text);
	return EXIT_USAGE;
}

int verb_session(const struct verb *verb, int argc, char **argv)
{
	struct options options;
	int status;

	if (!options_parse(verb, argc, argv, &options, &status))
		return status;
	status = session_act(&options);
	options_release(&options);
	return status;
}
