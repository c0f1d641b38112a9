/* Takes records as they come, shows them, and watches everything that may end that: signals, the command, the clock,
 * the count, the session, the output. */
#ifndef TRACEFAN_CLI_INTAKE_H
#define TRACEFAN_CLI_INTAKE_H

#include "consumers/cli/command.h"
#include "consumers/cli/options.h"
#include "consumers/cli/output.h"
#include "consumers/cli/private_session.h"
#include "consumers/client/tracefan.h"
#include "consumers/watch/watch.h"

#include <stdbool.h>
#include <stdint.h>

enum intake_stop {
	INTAKE_GOES_ON = 0,
	INTAKE_COUNT,    /* --count events have come */
	INTAKE_DURATION, /* --duration is over */
	INTAKE_LOSS,     /* events were lost, with --on-loss exit */
	INTAKE_SIGNAL,
	INTAKE_COMMAND,  /* the command has ended */
	INTAKE_OUTPUT,   /* nobody takes the output any more */
	INTAKE_SESSION,  /* the session is over or gone */
	INTAKE_RECORDING, /* its file takes no more */
};

struct intake {
	/* The owner's. */
	const struct options *options;
	struct tfan *tfan;
	struct output *output;
	struct command *command;         /* NULL: none */
	struct private_session *session; /* NULL: somebody else's */
	struct watch *watch;             /* what is shown is its records; NULL: the events themselves */
	int signal_fd;                   /* SIGINT and SIGTERM */
	bool hidden;                     /* show nothing */
	bool running;                    /* the traces are live: a signal is dealt with in the loop */
	bool recording;                  /* the session's recording is ours */
	uint64_t deadline, give_up;      /* ns, CLOCK_MONOTONIC; MONOTONIC_NEVER at the beginning */

	enum intake_stop stop; /* the first reason; set once */
	int status;            /* exit status of what went wrong, 0: nothing */
	uint64_t seen;         /* events taken before the stop */
	uint64_t taken;        /* raised with whatever was done */
	uint64_t heard;        /* raised with each sign of life: what the session sends is not all shown */
	unsigned int signals;
	bool lost;      /* a record told of loss */
	bool flushed;   /* the mark of tfan_flush came by */
	bool over;      /* nothing more comes */
	bool silent;    /* and that is because the session did not answer */
	bool told;      /* that the output takes no more */
	bool abandoned; /* a further signal after the stop: no more waiting for anything */
};

/* For an observer's sink: what it found, and for tfan_set_notice what it isn't given. */
void intake_watched(void *intake, const struct watch_record *record);
void intake_notice(void *intake, const struct tfan_event *event);

/* Until there is a reason to stop. */
void intake_run(struct intake *intake);

/* The rest, up to the mark of a tfan_flush that was asked for, unless the session is silent for too long. */
void intake_drain(struct intake *intake);

/* Says once why the output takes no more, if so. Who reads a pipe may leave when they have seen enough. */
void intake_check_output(struct intake *intake);

/* Goes on until the connection has come back to a router that is started again. False: it does not. */
bool intake_return(struct intake *intake);

/* A struct tfan_options' `wait`: until the session answers, the user gives up (-ECANCELED), or --duration is over while there
 * is no reader. */
int intake_wait_answer(void *intake, int fd, int milliseconds, bool readerless);

/* Before the traces are live: whether a signal has come, which is the reason to stop then. */
bool intake_interrupted(struct intake *intake);

/* What has come already, where nothing more will. */
void intake_take_ready(struct intake *intake);

/* For struct writer: waits until `fd` takes more, or the user gives up (-ECANCELED). */
int intake_wait_output(void *intake, int fd);

/* Waits until the command has ended or the user gives up. */
void intake_wait_command(struct intake *intake);

#endif
