/* Rates: how many events a second each probe of a user may bring, and all of them together. Whoever goes beyond loses
 * the probe until they ask for it again; nobody else loses anything. */
#ifndef TRACEFAN_ROUTER_BUDGET_H
#define TRACEFAN_ROUTER_BUDGET_H

#include <stddef.h>
#include <stdint.h>

struct router;
struct trace;
struct budget_user;

struct budget {
	size_t traces;  /* those with a rate */
	uint64_t since; /* ns of the stream's time: what is counted came since then; 0: nothing is counted yet */
	struct budget_user *users; /* of the last look */
	size_t user_room;
};

/* A trace with a rate was made; one goes. */
void budget_add(struct budget *budget, struct trace *trace);
void budget_remove(struct budget *budget, const struct trace *trace);
/* It is enabled: a new second begins for it, unless the last has not ended yet. */
void budget_begin(const struct budget *budget, struct trace *trace, uint64_t now);
void budget_release(struct budget *budget);

/* Looks whether a probe, or all of a user's, brought too many, and ends those that did. After each batch. */
void budget_check(struct router *router);

#endif
