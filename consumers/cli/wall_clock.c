#include "consumers/cli/wall_clock.h"

#include "consumers/cli/number.h"

#include <string.h>
#include <time.h>

static void wall_clock_fill(struct wall_clock *clock, uint64_t second)
{
	time_t seconds = (time_t)second;
	struct tm tm = { 0 };

	if (clock->form == WALL_CLOCK_UTC) {
		(void)gmtime_r(&seconds, &tm);
		clock->length = (unsigned int)strftime(clock->text, sizeof(clock->text), "%Y-%m-%dT%H:%M:%S.", &tm);
	} else {
		(void)localtime_r(&seconds, &tm);
		clock->length = (unsigned int)strftime(clock->text, sizeof(clock->text), "%H:%M:%S.", &tm);
	}
	clock->second = second;
	clock->filled = true;
}

char *wall_clock_write(struct wall_clock *clock, char *p, uint64_t wall)
{
	uint64_t second = wall / 1000000000;

	if (!clock->filled || second != clock->second)
		wall_clock_fill(clock, second);
	memcpy(p, clock->text, clock->length);
	p = number_padded(p + clock->length, wall % 1000000000, 9);
	if (clock->form == WALL_CLOCK_UTC)
		*p++ = 'Z';
	return p;
}
