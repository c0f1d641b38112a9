/* What the doctor finds on machines made up of files. */
#include "consumers/cli/doctor.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct machine {
	char folder[64];
	char mounts[128], filesystems[128], lockdown[128], sessions[128];
	struct doctor_machine machine;
	struct doctor_finding findings[DOCTOR_CHECKS];
};

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void make_folder(const struct machine *m, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", m->folder, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

/* A machine on which tracefs lies at FOLDER/tracing. */
static int set_up(void **state)
{
	struct machine *m = calloc(1, sizeof(*m));
	char line[256];

	assert_non_null(m);
	(void)strcpy(m->folder, "/tmp/test-cli-doctor-XXXXXX");
	assert_non_null(mkdtemp(m->folder));
	(void)snprintf(m->mounts, sizeof(m->mounts), "%s/mounts", m->folder);
	(void)snprintf(m->filesystems, sizeof(m->filesystems), "%s/filesystems", m->folder);
	(void)snprintf(m->lockdown, sizeof(m->lockdown), "%s/lockdown", m->folder);
	(void)snprintf(m->sessions, sizeof(m->sessions), "%s/sessions", m->folder);
	m->machine = (struct doctor_machine){ .mounts = m->mounts, .filesystems = m->filesystems, .lockdown = m->lockdown,
		.sessions = m->sessions };
	(void)snprintf(line, sizeof(line), "proc /proc proc rw 0 0\ntracefs %s/tracing tracefs rw 0 0\n", m->folder);
	write_file(m->mounts, line);
	write_file(m->filesystems, "nodev\tproc\nnodev\ttracefs\n");
	make_folder(m, "tracing");
	make_folder(m, "tracing/instances");
	make_folder(m, "tracing/events");
	make_folder(m, "tracing/events/sched");
	make_folder(m, "sessions");
	*state = m;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	struct machine *m = *state;
	int r = nftw(m->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);

	free(m);
	return r;
}

static const struct doctor_finding *check(struct machine *m, const char *name)
{
	doctor_check(&m->machine, m->findings);
	for (size_t i = 0; i < DOCTOR_CHECKS; i++) {
		if (strcmp(m->findings[i].name, name) == 0)
			return &m->findings[i];
	}
	fail_msg("no check is called %s", name);
	return NULL;
}

static void a_whole_machine(void **state)
{
	struct machine *m = *state;

	assert_int_equal(check(m, "tracefs")->state, DOCTOR_OK);
	assert_int_equal(check(m, "tracepoints")->state, DOCTOR_OK);
	assert_int_equal(check(m, "leftovers")->state, DOCTOR_OK);
	assert_string_equal(check(m, "sessions")->detail, "none is running");
}

static void tracefs_is_not_mounted(void **state)
{
	struct machine *m = *state;
	const struct doctor_finding *finding;

	write_file(m->mounts, "proc /proc proc rw 0 0\n");
	finding = check(m, "tracefs");
	assert_int_equal(finding->state, DOCTOR_LACK);
	assert_int_equal(finding->status, 4);
	assert_string_equal(finding->mend, "sudo mount -t tracefs tracefs /sys/kernel/tracing");
	write_file(m->filesystems, "nodev\tproc\n");
	finding = check(m, "tracefs");
	assert_int_equal(finding->state, DOCTOR_LACK);
	assert_string_equal(finding->mend, "");
	assert_non_null(strstr(finding->detail, "CONFIG_TRACING"));
}

static void lockdown_is_named(void **state)
{
	struct machine *m = *state;
	const struct doctor_finding *finding;

	write_file(m->lockdown, "none [integrity] confidentiality\n");
	assert_int_equal(check(m, "tracefs")->state, DOCTOR_OK);
	write_file(m->lockdown, "none integrity [confidentiality]\n");
	finding = check(m, "tracefs");
	assert_int_equal(finding->state, DOCTOR_LACK);
	assert_int_equal(finding->status, 4);
	assert_non_null(strstr(finding->detail, "lockdown"));
	assert_non_null(strstr(finding->mend, "lockdown=integrity"));
}

static void kinds_of_probes(void **state)
{
	struct machine *m = *state;
	char path[256];

	assert_int_equal(check(m, "uprobes")->state, DOCTOR_NOTE);
	(void)snprintf(path, sizeof(path), "%s/tracing/uprobe_events", m->folder);
	write_file(path, "");
	assert_int_equal(check(m, "uprobes")->state, DOCTOR_OK);
	assert_int_equal(check(m, "kprobes")->state, DOCTOR_NOTE);
}

static void leftovers_and_sessions(void **state)
{
	struct machine *m = *state;
	const struct doctor_finding *finding;
	char path[256];

	make_folder(m, "tracing/instances/tracefan-live");
	make_folder(m, "tracing/instances/tracefan-dead");
	make_folder(m, "tracing/instances/somebody-else");
	make_folder(m, "sessions/live");
	(void)snprintf(path, sizeof(path), "%s/sessions/live/consumers.sock", m->folder);
	write_file(path, "");
	finding = check(m, "leftovers");
	assert_int_equal(finding->state, DOCTOR_NOTE);
	assert_string_equal(finding->mend, "sudo tracefan-reader --remove --session dead");
	assert_null(strstr(finding->detail, "live"));
	assert_null(strstr(finding->detail, "somebody"));
	assert_string_equal(check(m, "sessions")->detail, "live");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_whole_machine, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tracefs_is_not_mounted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lockdown_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kinds_of_probes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(leftovers_and_sessions, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
