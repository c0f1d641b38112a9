/* A table of probes and how many events each brings, again and again. */
#ifndef TRACEFAN_CLI_TOP_H
#define TRACEFAN_CLI_TOP_H

#include "consumers/client/tracefan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct top_row {
	const struct tfan_trace *trace;
	struct tfan_ledger ledger;
	uint64_t before; /* decoded, at the last look */
	uint64_t rate;   /* events per second since then */
};

struct top {
	struct top_row *rows; /* the busiest first */
	size_t count;
	uint64_t time; /* ns, of the last look; 0: there was none */
	struct tfan_session_ledger session;
};

/* Rows for all traces of the connection. Returns 0 or -ENOMEM. */
int top_make(struct top *top, const struct tfan *tfan);
void top_release(struct top *top);
/* Asks for the ledgers. Returns 0 or what the library fails with. */
int top_look(struct top *top, struct tfan *tfan, uint64_t now);

/* On a terminal. Its own file, for curses names things as it likes. */
bool top_screen_open(void); /* false: the terminal can't */
void top_screen_show(const struct top *top);
/* Whether the user pressed q. */
bool top_screen_quits(void);
void top_screen_close(void);

#endif
