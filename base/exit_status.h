/* The exit statuses of every tracefan program; control replies carry the same numbers as their class. */
#ifndef TRACEFAN_BASE_EXIT_STATUS_H
#define TRACEFAN_BASE_EXIT_STATUS_H

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,        /* failed while running */
	EXIT_USAGE = 2,         /* wrong usage, filter or probe syntax; the position is shown */
	EXIT_NOT_PERMITTED = 3, /* which rule, what to do */
	EXIT_MISSING = 4,       /* tracefs or a kernel feature is missing: which */
	EXIT_LOCATION = 5,      /* no such file, symbol or event: told apart, near names offered */
	EXIT_FETCH_ARG = 6,     /* bad fetch arguments: the kernel's own words and the position */
	EXIT_BUSY = 7,          /* who holds it */
	EXIT_LOST = 8,          /* events were lost, with --on-loss exit */
};

#endif
