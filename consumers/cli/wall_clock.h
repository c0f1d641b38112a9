/* Wall time as text. Events come many to the second: what changes by the second is kept. */
#ifndef TRACEFAN_CLI_WALL_CLOCK_H
#define TRACEFAN_CLI_WALL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum wall_clock_form {
	WALL_CLOCK_UTC = 0,   /* 2024-05-06T07:08:09.123456789Z: RFC 3339 */
	WALL_CLOCK_LOCAL = 1, /* 09:08:09.123456789 */
};

#define WALL_CLOCK_SIZE_MAX 40

struct wall_clock {
	enum wall_clock_form form;
	bool filled;
	uint64_t second;
	unsigned int length;
	char text[WALL_CLOCK_SIZE_MAX];
};

/* Writes `wall` (ns since the epoch) at p, without a NUL; returns where it ends. */
char *wall_clock_write(struct wall_clock *clock, char *p, uint64_t wall);

#endif
