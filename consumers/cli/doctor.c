#include "consumers/cli/doctor.h"

#include "base/exit_status.h"
#include "consumers/cli/private_session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/io_uring.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static void found(struct doctor_finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(finding->detail, sizeof(finding->detail), format, arguments);
	va_end(arguments);
}

__attribute__((format(printf, 3, 4))) static void lacks(struct doctor_finding *finding, enum doctor_state state,
	const char *mend, ...)
{
	va_list arguments;

	finding->state = state;
	va_start(arguments, mend);
	(void)vsnprintf(finding->mend, sizeof(finding->mend), mend, arguments);
	va_end(arguments);
}

/* Whether a file has a line for which `match` holds; it may take something out of it. */
static bool file_has_line(const char *path, bool (*match)(const char *line, void *context), void *context)
{
	FILE *file = fopen(path, "re");
	char line[1024];
	bool has = false;

	if (!file)
		return false;
	while (!has && fgets(line, sizeof(line), file))
		has = match(line, context);
	(void)fclose(file);
	return has;
}

static bool exists(const struct doctor_machine *machine, const char *name)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", machine->tracefs, name);
	return *machine->tracefs && access(path, F_OK) == 0;
}

/* ---- the kernel ---- */

static void check_kernel(struct doctor_machine *machine, struct doctor_finding *finding)
{
	struct utsname name;

	(void)machine;
	if (uname(&name) == 0)
		found(finding, "%s %s, %ld CPUs", name.release, name.machine, sysconf(_SC_NPROCESSORS_CONF));
}

static bool is_tracefs_mount(const char *line, void *context)
{
	struct doctor_machine *machine = context;
	char place[256], type[64];

	if (sscanf(line, "%*s %255s %63s", place, type) != 2 || strcmp(type, "tracefs") != 0)
		return false;
	memcpy(machine->tracefs, place, sizeof(place));
	return true;
}

static bool is_tracefs_type(const char *line, void *context)
{
	(void)context;
	return strstr(line, "tracefs") != NULL;
}

static bool is_locked_down(const char *line, void *context)
{
	(void)context;
	return strstr(line, "[confidentiality]") != NULL;
}

static void check_tracefs(struct doctor_machine *machine, struct doctor_finding *finding)
{
	finding->status = EXIT_MISSING;
	if (!file_has_line(machine->mounts, is_tracefs_mount, machine)) {
		bool known = file_has_line(machine->filesystems, is_tracefs_type, NULL);

		found(finding, known ? "not mounted" : "this kernel was built without it (CONFIG_TRACING)");
		lacks(finding, DOCTOR_LACK, "%s", known ? "sudo mount -t tracefs tracefs /sys/kernel/tracing" : "");
		return;
	}
	if (file_has_line(machine->lockdown, is_locked_down, NULL)) {
		found(finding, "closed by kernel lockdown (confidentiality)");
		lacks(finding, DOCTOR_LACK, "boot with lockdown=integrity, or without lockdown");
		return;
	}
	if (geteuid() == 0 && !exists(machine, "instances")) {
		found(finding, "mounted at %s, but empty", machine->tracefs);
		lacks(finding, DOCTOR_LACK, "%s", "");
		return;
	}
	found(finding, "mounted at %s", machine->tracefs);
}

static void check_privilege(struct doctor_machine *machine, struct doctor_finding *finding)
{
	(void)machine;
	finding->status = EXIT_NOT_PERMITTED;
	if (geteuid() == 0) {
		found(finding, "root: can start sessions of its own");
		return;
	}
	found(finding, "not root: can attach to running sessions; what follows of tracefs is hidden");
	lacks(finding, DOCTOR_NOTE, "sudo tracefan doctor");
}

/* What only root can look for. */
static void check_file(const struct doctor_machine *machine, struct doctor_finding *finding, const char *name,
	const char *config, enum doctor_state state)
{
	if (exists(machine, name)) {
		found(finding, "yes");
		return;
	}
	if (geteuid() != 0) {
		finding->state = DOCTOR_NOTE;
		found(finding, "not visible to this user");
		return;
	}
	found(finding, "no: this kernel was built without %s", config);
	lacks(finding, state, "%s", "");
	finding->status = EXIT_MISSING;
}

static void check_tracepoints(struct doctor_machine *machine, struct doctor_finding *finding)
{
	check_file(machine, finding, "events/sched", "CONFIG_EVENT_TRACING", DOCTOR_LACK);
}

static void check_kprobes(struct doctor_machine *machine, struct doctor_finding *finding)
{
	check_file(machine, finding, "kprobe_events", "CONFIG_KPROBE_EVENTS", DOCTOR_NOTE);
}

static void check_uprobes(struct doctor_machine *machine, struct doctor_finding *finding)
{
	check_file(machine, finding, "uprobe_events", "CONFIG_UPROBE_EVENTS", DOCTOR_NOTE);
}

static void check_io_uring(struct doctor_machine *machine, struct doctor_finding *finding)
{
	struct io_uring_params params = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 1, &params);

	(void)machine;
	if (fd >= 0) {
		(void)close(fd);
		found(finding, "yes");
		return;
	}
	found(finding, "%s: sub-buffers are read one by one instead", strerror(errno));
	lacks(finding, DOCTOR_NOTE, "%s", errno == EPERM ? "sudo sysctl kernel.io_uring_disabled=0" : "");
}

static void check_landlock(struct doctor_machine *machine, struct doctor_finding *finding)
{
	/* LANDLOCK_CREATE_RULESET_VERSION, which older headers lack. */
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, 1U);

	(void)machine;
	if (version > 0) {
		found(finding, "yes, version %ld", version);
		return;
	}
	found(finding, "no: the daemons are confined by seccomp and their ids alone");
	lacks(finding, DOCTOR_NOTE, "%s", errno == EOPNOTSUPP ? "boot with lsm=landlock before the others" : "");
}

/* ---- the installation ---- */

static void check_daemons(struct doctor_machine *machine, struct doctor_finding *finding)
{
	static const char *const daemons[] = { "tracefan-reader", "tracefan-router" };
	char path[2 * PATH_MAX];

	(void)machine;
	finding->status = EXIT_FAILED;
	for (size_t i = 0; i < sizeof(daemons) / sizeof(daemons[0]); i++) {
		if (private_session_program(daemons[i], path, sizeof(path)) < 0) {
			found(finding, "%s is not where this program looks", daemons[i]);
			lacks(finding, DOCTOR_LACK, "sudo cmake --install build/release");
			return;
		}
	}
	found(finding, "found, %.240s the last", path);
}

static void check_router_user(struct doctor_machine *machine, struct doctor_finding *finding)
{
	(void)machine;
	if (getpwnam("tracefan-router")) {
		found(finding, "tracefan-router");
		return;
	}
	found(finding, "no user tracefan-router: the router runs as nobody, which others may do, too");
	lacks(finding, DOCTOR_NOTE, "sudo useradd --system --no-create-home --shell /usr/sbin/nologin tracefan-router");
}

static bool is_member(gid_t group)
{
	gid_t groups[1024];
	int n = getgroups(1024, groups);

	for (int i = 0; i < n; i++) {
		if (groups[i] == group)
			return true;
	}
	return getegid() == group;
}

static void check_group(struct doctor_machine *machine, struct doctor_finding *finding)
{
	const struct group *group = getgrnam("tracefan");
	const struct passwd *user = getpwuid(getuid());

	(void)machine;
	if (!group) {
		found(finding, "no group tracefan: only root can attach to a session that names no other group");
		lacks(finding, DOCTOR_NOTE, "sudo groupadd --system tracefan");
	} else if (geteuid() != 0 && !is_member(group->gr_gid)) {
		found(finding, "this user is not in it");
		lacks(finding, DOCTOR_NOTE, "sudo usermod -aG tracefan %s", user ? user->pw_name : "USER");
	} else {
		found(finding, "tracefan");
	}
}

/* ---- sessions ---- */

struct names {
	char text[200];
	size_t count;
};

static void names_add(struct names *names, const char *name)
{
	size_t used = strlen(names->text);

	(void)snprintf(names->text + used, sizeof(names->text) - used, "%s%s", names->count ? ", " : "", name);
	names->count++;
}

static void check_sessions(struct doctor_machine *machine, struct doctor_finding *finding)
{
	DIR *dir = opendir(machine->sessions);
	struct names open = { 0 }, closed = { 0 };
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[PATH_MAX];

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s/consumers.sock", machine->sessions, entry->d_name);
		if (access(path, W_OK) == 0)
			names_add(&open, entry->d_name);
		else if (errno == EACCES)
			names_add(&closed, entry->d_name);
	}
	if (dir)
		(void)closedir(dir);
	if (open.count + closed.count == 0)
		found(finding, "none is running");
	else
		found(finding, "%s%s%s%s", open.text, closed.count ? (open.count ? "; not for this user: " : "not for this user: ") : "",
			closed.text, "");
}

/* Instances that carry our name without a session that holds them. */
static void check_leftovers(struct doctor_machine *machine, struct doctor_finding *finding)
{
	char path[PATH_MAX], last[64] = "";
	const struct dirent *entry;
	struct names left = { 0 };
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/instances", machine->tracefs);
	dir = *machine->tracefs ? opendir(path) : NULL;
	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "tracefan-", 9) != 0 || strlen(entry->d_name) - 9 >= sizeof(last))
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", machine->sessions, entry->d_name + 9);
		if (access(path, F_OK) == 0)
			continue;
		names_add(&left, entry->d_name + 9);
		memcpy(last, entry->d_name + 9, strlen(entry->d_name + 9) + 1);
	}
	if (dir)
		(void)closedir(dir);
	if (!dir && geteuid() != 0) {
		finding->state = DOCTOR_NOTE;
		found(finding, "not visible to this user");
		return;
	}
	found(finding, "%s%s", left.count ? "traces of sessions that are not in " : "none", left.count ? machine->sessions : "");
	if (left.count) {
		size_t used = strlen(finding->detail);

		(void)snprintf(finding->detail + used, sizeof(finding->detail) - used, ": %s", left.text);
		lacks(finding, DOCTOR_NOTE, "sudo tracefan-reader --remove --session %s", last);
	}
}

static const struct {
	const char *name;
	void (*check)(struct doctor_machine *machine, struct doctor_finding *finding);
} doctor_rows[] = {
	{ "kernel", check_kernel },
	{ "tracefs", check_tracefs },
	{ "privilege", check_privilege },
	{ "tracepoints", check_tracepoints },
	{ "kprobes", check_kprobes },
	{ "uprobes", check_uprobes },
	{ "io_uring", check_io_uring },
	{ "landlock", check_landlock },
	{ "daemons", check_daemons },
	{ "router's user", check_router_user },
	{ "group", check_group },
	{ "sessions", check_sessions },
	{ "leftovers", check_leftovers },
};

_Static_assert(sizeof(doctor_rows) / sizeof(doctor_rows[0]) == DOCTOR_CHECKS, "a finding for each check");

void doctor_check(struct doctor_machine *machine, struct doctor_finding *findings)
{
	for (size_t i = 0; i < DOCTOR_CHECKS; i++) {
		findings[i] = (struct doctor_finding){ .name = doctor_rows[i].name };
		doctor_rows[i].check(machine, &findings[i]);
	}
}
