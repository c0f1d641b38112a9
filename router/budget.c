#include "router/budget.h"

#include "router/consumer_switch.h"
#include "router/router.h"

#include <stdlib.h>

#define SECOND_NS UINT64_C(1000000000)

/* One user's probes, since the window began. */
struct budget_user {
	uint32_t owner, rate;
	uint64_t count;
	struct trace *busiest;
	uint64_t most;
};

static bool is_rated(const struct trace *trace)
{
	return trace->rate || trace->owner_rate;
}

/* All that the kernel recorded of the probe while the trace was live, whatever its filter: that is what it costs. */
static uint64_t brought(const struct trace *trace)
{
	return fanout_trace_ledger(trace).decoded;
}

void budget_add(struct budget *budget, struct trace *trace)
{
	trace->rate_base = brought(trace);
	budget->traces += is_rated(trace);
}

void budget_remove(struct budget *budget, const struct trace *trace)
{
	budget->traces -= is_rated(trace);
}

void budget_begin(const struct budget *budget, struct trace *trace, uint64_t now)
{
	if (now - budget->since >= SECOND_NS)
		trace->rate_base = brought(trace);
}

void budget_release(struct budget *budget)
{
	free(budget->users);
	*budget = (struct budget){ 0 };
}

/* More than the rate in a second, or, where the batches lie further apart, more than it on the average. */
static bool is_beyond(uint64_t count, uint32_t rate, uint64_t elapsed)
{
	if (!rate || count <= rate)
		return false;
	return elapsed <= SECOND_NS || count / rate > elapsed / SECOND_NS;
}

/* NULL: no memory, then nothing is counted for the user this time. */
static struct budget_user *user_of(struct budget *budget, size_t *count, const struct trace *trace)
{
	struct budget_user *users;

	for (size_t i = 0; i < *count; i++) {
		if (budget->users[i].owner == trace->owner)
			return &budget->users[i];
	}
	if (*count == budget->user_room) {
		users = realloc(budget->users, (2 * budget->user_room + 8) * sizeof(*users));
		if (!users)
			return NULL;
		budget->users = users;
		budget->user_room = 2 * budget->user_room + 8;
	}
	budget->users[*count] = (struct budget_user){ .owner = trace->owner, .rate = trace->owner_rate };
	return &budget->users[(*count)++];
}

/* Counts one trace to its user's, and ends it if it alone is too many. */
static void look(struct router *router, struct trace *trace, uint64_t elapsed, size_t *users)
{
	const uint64_t count = brought(trace) - trace->rate_base;
	struct budget_user *user;

	if (!trace->enabled)
		return;
	if (is_beyond(count, trace->rate, elapsed)) {
		const struct record_throttled why = { .rate = trace->rate, .count = count, .since = router->budget.since };

		consumer_throttle(router, trace, &why);
		return;
	}
	user = trace->owner_rate ? user_of(&router->budget, users, trace) : NULL;
	if (!user)
		return;
	user->count += count;
	if (count >= user->most) {
		user->most = count;
		user->busiest = trace;
	}
}

static void for_each_rated(struct router *router, uint64_t elapsed, size_t *users, bool begin)
{
	for (size_t i = 0; i < router->fanout.route_count; i++) {
		const struct route *route = router->fanout.routes[i];

		for (uint32_t k = 0; k < route->trace_count; k++) {
			struct trace *trace = route->traces[k];

			if (is_rated(trace) && begin)
				trace->rate_base = brought(trace);
			else if (is_rated(trace))
				look(router, trace, elapsed, users);
		}
	}
}

void budget_check(struct router *router)
{
	struct budget *budget = &router->budget;
	const uint64_t now = router->fanout.last_time, elapsed = now - budget->since;
	size_t users = 0;

	if (!budget->traces)
		return;
	if (budget->since)
		for_each_rated(router, elapsed, &users, false);
	/* The probe that brings most goes first; if that is not enough, the next look takes another. */
	for (size_t i = 0; i < users; i++) {
		const struct budget_user *user = &budget->users[i];
		const struct record_throttled why = {
			.rate = user->rate, .count = user->count, .since = budget->since, .of_user = 1
		};

		if (is_beyond(user->count, user->rate, elapsed))
			consumer_throttle(router, user->busiest, &why);
	}
	if (budget->since && elapsed < SECOND_NS)
		return;
	budget->since = now;
	for_each_rated(router, elapsed, &users, true);
}
