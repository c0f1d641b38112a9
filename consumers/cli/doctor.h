/* What this machine lets tracefan do: one finding per check, each lack with what mends it. */
#ifndef TRACEFAN_CLI_DOCTOR_H
#define TRACEFAN_CLI_DOCTOR_H

#include <stddef.h>

enum doctor_state {
	DOCTOR_OK,
	DOCTOR_NOTE, /* tracefan works, with less */
	DOCTOR_LACK, /* something that tracefan is asked for does not work */
};

struct doctor_finding {
	const char *name;
	enum doctor_state state;
	int status;       /* the exit status that this lack would lead to */
	char detail[256]; /* what was found */
	char mend[256];   /* one command, or empty: nothing can be done from here */
};

/* Where things are looked for; tests put a made-up machine there. */
struct doctor_machine {
	const char *mounts;      /* /proc/self/mounts */
	const char *filesystems; /* /proc/filesystems */
	const char *lockdown;    /* /sys/kernel/security/lockdown */
	const char *sessions;    /* /run/tracefan */
	char tracefs[256];       /* found by doctor_check; empty: not mounted */
};

#define DOCTOR_MACHINE                                                                                                 \
	{                                                                                                              \
		.mounts = "/proc/self/mounts", .filesystems = "/proc/filesystems",                                     \
		.lockdown = "/sys/kernel/security/lockdown", .sessions = "/run/tracefan"                               \
	}

#define DOCTOR_CHECKS 13

/* Fills in DOCTOR_CHECKS findings. */
void doctor_check(struct doctor_machine *machine, struct doctor_finding *findings);

#endif
