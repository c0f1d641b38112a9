#include "consumers/cli/private_session.h"

#include "base/exit_status.h"
#include "consumers/cli/message.h"
#include "consumers/cli/monotonic.h"
#include "consumers/client/tracefan.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a clean end may take. The kernel waits for its readers when a probe is disabled and again when it is removed, which
 * is a tenth of a second on a busy machine. Then they are killed. */
#define PRIVATE_SESSION_PATIENCE       (20 * MONOTONIC_SECOND)
#define PRIVATE_SESSION_PROBE_PATIENCE (MONOTONIC_SECOND / 2)
/* The same for one that has not answered for so long. */
#define PRIVATE_SESSION_LAST_CHANCE    (2 * MONOTONIC_SECOND)
#define PRIVATE_SESSION_ARGS           48
/* What stands behind the directory in a socket's path (108 bytes in all). */
#define PRIVATE_SESSION_PATH_MAX (107 - sizeof("/12345678901234567890123456789012/consumers.sock"))

struct private_session_argv {
	char *words[PRIVATE_SESSION_ARGS + 1];
	unsigned int count;
};

static void argv_add(struct private_session_argv *argv, const char *word)
{
	/* execve(2) takes them as not const for history's sake only. Callers keep to the limit. */
	if (argv->count < PRIVATE_SESSION_ARGS)
		argv->words[argv->count++] = (char *)word;
}

static void argv_option(struct private_session_argv *argv, const char *option, const char *value)
{
	if (value) {
		argv_add(argv, option);
		argv_add(argv, value);
	}
}

/* ---- where ---- */

/* A folder below /tmp is only good when it is ours alone: anybody could have made it. */
static bool private_session_own_folder(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return false;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

static int private_session_directory(struct private_session *session, const struct private_session_config *config)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	size_t size = sizeof(session->directory);

	if (config->directory || geteuid() == 0) {
		(void)snprintf(session->directory, size, "%s", config->directory ? config->directory : "/run/tracefan");
		return 0;
	}
	if (runtime && *runtime == '/' && strlen(runtime) + sizeof("/tracefan") <= PRIVATE_SESSION_PATH_MAX) {
		(void)snprintf(session->directory, size, "%s/tracefan", runtime);
		if (private_session_own_folder(session->directory))
			return 0;
	}
	(void)snprintf(session->directory, size, "/tmp/tracefan-%u", (unsigned int)geteuid());
	if (private_session_own_folder(session->directory))
		return 0;
	message("no place for the session's sockets: %s must be a folder of yours with mode 0700", session->directory);
	return EXIT_FAILED;
}

static int private_session_name(struct private_session *session, const struct private_session_config *config)
{
	unsigned int number;

	if (config->name) {
		(void)snprintf(session->name, sizeof(session->name), "%s", config->name);
		return 0;
	}
	if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
		message("no random numbers: %s", strerror(errno));
		return EXIT_FAILED;
	}
	(void)snprintf(session->name, sizeof(session->name), "private-%d-%08x", (int)getpid(), number);
	return 0;
}

int private_session_program(const char *name, char *path, size_t size)
{
	static const char *const folders[] = { "", "../libexec/tracefan/", "../lib/tracefan/", "../sbin/" };
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return -errno;
	self[n] = '\0';
	strrchr(self, '/')[1] = '\0';
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		int length = snprintf(path, size, "%s%s%s", self, folders[i], name);

		if (length > 0 && (size_t)length < size && access(path, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

static int private_session_find(const char *name, char *path, size_t size)
{
	int r = private_session_program(name, path, size);

	if (r == -ENOENT)
		message("%s is neither beside this program nor in ../libexec/tracefan from there: is tracefan fully installed?", name);
	else if (r < 0)
		message("/proc/self/exe: %s; is /proc mounted?", strerror(-r));
	return r < 0 ? EXIT_FAILED : 0;
}

/* The name of our own group: a private session is nobody else's. NULL leaves the choice to the reader. */
static const char *private_session_group(void)
{
	const struct group *group = getgrgid(getegid());

	return group ? group->gr_name : NULL;
}

/* ---- starting ---- */

/* What was killed can't have said why. */
static void private_session_tell_death(struct daemon *daemon)
{
	if (daemon->status < 128 || daemon->told)
		return;
	daemon->told = true;
	if (daemon->status - 128 == SIGSYS)
		message("%s was killed by SIGSYS: it made a system call that its sandbox forbids, which it named before", daemon->name);
	else
		message("%s was killed by signal %d", daemon->name, daemon->status - 128);
}

static int private_session_started(struct daemon *daemon, int r)
{
	if (r < 0) {
		message("can't start %s: %s%s", daemon->name, strerror(-r),
			r == -EMFILE ? ": raise the limit, by ulimit -n 1024" : "");
		return EXIT_FAILED;
	}
	private_session_tell_death(daemon);
	/* It has said why, otherwise; its statuses mean what ours do. */
	return r > EXIT_LOST ? EXIT_FAILED : r;
}

/* The pipe whose end of file ends a private session. */
static int private_session_own(struct private_session *session, int *ret_reader_end)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0) {
		message("pipe: %s", strerror(errno));
		return EXIT_FAILED;
	}
	session->owner = ends[1];
	*ret_reader_end = ends[0];
	return 0;
}

static void private_session_reader_argv(struct private_session_argv *argv, const struct private_session *session,
	const struct private_session_config *config, const char *owner)
{
	argv_option(argv, "--session", session->name);
	argv_option(argv, "--directory", session->directory);
	/* Others are let in where that is the purpose. */
	argv_option(argv, "--group", config->name ? NULL : private_session_group());
	argv_option(argv, "--policy", config->name ? config->policy : "none");
	argv_option(argv, "--owner-fd", owner);
	argv_option(argv, "--source", config->source);
	argv_option(argv, "--interval", config->interval);
	if (config->input_option)
		argv_option(argv, config->input_option, config->input);
	argv_option(argv, "--config", config->config);
}

static int private_session_start_reader(struct private_session *session, const struct private_session_config *config)
{
	struct daemon_fds fds = { .keep = -1, .errors = config->errors };
	struct private_session_argv argv = { 0 };
	char path[2 * PATH_MAX], number[16];
	int r = private_session_find("tracefan-reader", path, sizeof(path));

	if (r == 0 && !config->name)
		r = private_session_own(session, &fds.keep);
	if (r != 0)
		return r;
	(void)snprintf(number, sizeof(number), "%d", DAEMON_KEPT_FD);
	argv_add(&argv, path);
	private_session_reader_argv(&argv, session, config, config->name ? NULL : number);
	r = daemon_start(&session->reader, "tracefan-reader", argv.words, fds, session->interrupt);
	if (fds.keep >= 0)
		(void)close(fds.keep);
	return private_session_started(&session->reader, r);
}

static int private_session_start_router(struct private_session *session, const struct private_session_config *config)
{
	struct private_session_argv argv = { 0 };
	char path[2 * PATH_MAX], number[16];
	int r = private_session_find("tracefan-router", path, sizeof(path));

	if (r != 0)
		return r;
	(void)snprintf(number, sizeof(number), "%d", DAEMON_KEPT_FD);
	argv_add(&argv, path);
	argv_option(&argv, "--session", session->name);
	argv_option(&argv, "--directory", session->directory);
	argv_option(&argv, "--record-fd", config->record_fd >= 0 ? number : NULL);
	r = daemon_start(&session->router, "tracefan-router", argv.words,
		(struct daemon_fds){ .keep = config->record_fd, .errors = config->errors }, session->interrupt);
	return private_session_started(&session->router, r);
}

/* What of a session that lasts is there already: one of its daemons may have died. */
struct private_session_found {
	bool reader, router;
};

static struct private_session_found private_session_look(const struct private_session *session)
{
	struct private_session_found found = { .reader = false };
	struct tfan_operator_status status;
	struct tfan_operator *control;

	if (tfan_operator_open(session->directory, session->name, &control) == 0 && tfan_operator_status(control, &status) == 0) {
		found.reader = true;
		found.router = status.router_pid != 0;
	}
	tfan_operator_close(control);
	return found;
}

/* A reader that takes over from one that died has a router. */
static int private_session_start_lasting(struct private_session *session, const struct private_session_config *config)
{
	struct private_session_found found = private_session_look(session);
	int status = 0;

	if (!found.reader || found.router) {
		status = private_session_start_reader(session, config);
		if (status == 0)
			found = private_session_look(session);
	}
	if (status != 0 || found.router)
		return status;
	status = private_session_start_router(session, config);
	/* Somebody else's was quicker, and serves as well. */
	return status == EXIT_BUSY && private_session_look(session).router ? 0 : status;
}

int private_session_start(struct private_session *session, const struct private_session_config *config)
{
	int status = private_session_name(session, config);

	if (status == 0)
		status = private_session_directory(session, config);
	if (status == 0 && config->name)
		status = private_session_start_lasting(session, config);
	else if (status == 0)
		status = private_session_start_reader(session, config);
	if (status == 0 && !config->name)
		status = private_session_start_router(session, config);
	/* A reader that nobody owns has to be told. */
	if (status != 0 && config->name && !daemon_ended(&session->reader))
		(void)kill(session->reader.pid, SIGTERM);
	/* What one says of it when the other was killed is less true. */
	if (status != 0 && private_session_stop(session, false) == EXIT_FAILED)
		status = EXIT_FAILED;
	return status;
}

/* ---- running and ending ---- */

void private_session_leave(struct private_session *session)
{
	daemon_leave(&session->reader);
	daemon_leave(&session->router);
}

bool private_session_broken(struct private_session *session)
{
	struct daemon *reader = &session->reader;

	if (reader->pid == 0 || !daemon_ended(reader) || reader->status == 0)
		return false;
	if (reader->status < 128)
		message("%s has ended with status %d", reader->name, reader->status);
	else
		private_session_tell_death(reader);
	return true;
}

static uint64_t private_session_patience(const struct private_session *session)
{
	return PRIVATE_SESSION_PATIENCE + session->probes * PRIVATE_SESSION_PROBE_PATIENCE;
}

int private_session_remove(const char *name, const char *directory, uint64_t patience)
{
	struct private_session_argv argv = { 0 };
	struct daemon remover = DAEMON_NONE;
	char path[2 * PATH_MAX];
	int status;

	if (private_session_find("tracefan-reader", path, sizeof(path)) != 0)
		return EXIT_FAILED;
	argv_add(&argv, path);
	argv_option(&argv, "--session", name);
	argv_option(&argv, "--directory", directory);
	argv_add(&argv, "--remove");
	if (daemon_spawn(&remover, "tracefan-reader", argv.words, (struct daemon_fds){ -1, -1 }) < 0)
		return EXIT_FAILED;
	status = daemon_finish(&remover, monotonic_now() + patience);
	return status > EXIT_LOST ? EXIT_FAILED : status;
}

int private_session_stop(struct private_session *session, bool hangs)
{
	uint64_t deadline = monotonic_now() + (hangs ? PRIVATE_SESSION_LAST_CHANCE : private_session_patience(session));
	int router, reader;

	if (session->owner >= 0)
		(void)close(session->owner);
	session->owner = -1;
	reader = daemon_finish(&session->reader, deadline);
	router = daemon_finish(&session->router, deadline);
	private_session_tell_death(&session->reader);
	private_session_tell_death(&session->router);
	/* Its name is random: no later reader would take over what it left in the kernel. */
	if (reader >= 128 && private_session_remove(session->name, session->directory, private_session_patience(session)))
		message("what session %s left behind could not be removed: run tracefan-reader --remove --session %s --directory %s",
			session->name, session->name, session->directory);
	session->reader.pid = 0;
	session->router.pid = 0;
	/* The user's own folder goes with the last session in it; /run/tracefan belongs to the system. */
	if (geteuid() != 0 && *session->directory)
		(void)rmdir(session->directory);
	if (reader != 0)
		return reader > EXIT_LOST ? EXIT_FAILED : reader;
	return router > EXIT_LOST ? EXIT_FAILED : router;
}
