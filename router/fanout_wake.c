/* Which rings have something new, and when their consumers are woken for it. */
#include "router/fanout.h"

#include "base/log.h"

#include <string.h>

/* To wake a process costs tens of microseconds of its and our time, as much as hundreds of events. So many are woken
 * at once, and beyond them one in so many ns: consumers that would be woken for a few events each take more at a time. */
#define WAKE_BURST  UINT64_C(32)
#define WAKE_PERIOD UINT64_C(250000)
/* Nobody waits for longer. */
#define WAKE_WAIT   UINT64_C(16000000)

void fanout_touch(struct fanout *fanout, struct outlet *outlet)
{
	if (outlet->dirty)
		return;
	outlet->dirty = true;
	outlet->next_dirty = NULL;
	*fanout->dirty_end = outlet;
	fanout->dirty_end = &outlet->next_dirty;
}

static void told(int r)
{
	if (r < 0)
		log_warning("waking a consumer: %s", strerror(-r));
}

void fanout_publish(struct fanout *fanout)
{
	for (struct outlet *outlet = fanout->dirty; outlet; outlet = outlet->next_dirty)
		told(outlet_publish(outlet));
}

/* When the next may be woken, if it is not yet. */
static uint64_t wake_turn(struct fanout *fanout, uint64_t now)
{
	const uint64_t turn = fanout->woken_until - WAKE_BURST * WAKE_PERIOD + 1;

	if (fanout->woken_until - now < WAKE_BURST * WAKE_PERIOD)
		return now;
	if (!fanout->held)
		fanout->held = now;
	return turn < fanout->held + WAKE_WAIT ? turn : fanout->held + WAKE_WAIT;
}

uint64_t fanout_wake(struct fanout *fanout, uint64_t now)
{
	int r;

	if (fanout->woken_until < now)
		fanout->woken_until = now;
	while (fanout->dirty) {
		struct outlet *outlet = fanout->dirty;
		const uint64_t turn = wake_turn(fanout, now);

		if (turn > now)
			return turn;
		fanout->dirty = outlet->next_dirty;
		if (!fanout->dirty)
			fanout->dirty_end = &fanout->dirty;
		outlet->dirty = false;
		/* What became due since the last publication: nothing may come behind it for long. */
		r = outlet_publish(outlet);
		if (r == 0)
			r = outlet_wake(outlet);
		if (r > 0)
			fanout->woken_until += WAKE_PERIOD;
		told(r);
	}
	fanout->held = 0;
	/* Those who were woken before their turn are no debt of those who come. */
	if (fanout->woken_until - now > WAKE_BURST * WAKE_PERIOD)
		fanout->woken_until = now + WAKE_BURST * WAKE_PERIOD;
	return UINT64_MAX;
}

void fanout_forget(struct fanout *fanout, struct outlet *outlet)
{
	struct outlet **place = &fanout->dirty;

	while (*place && *place != outlet)
		place = &(*place)->next_dirty;
	if (!*place)
		return;
	*place = outlet->next_dirty;
	if (!*place)
		fanout->dirty_end = place;
}
