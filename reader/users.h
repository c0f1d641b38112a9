/* What each user holds of the session: consumers, bytes of their rings, probes. The router says who
 * leaves and what is closed; whose it is was told by the kernel when it came. */
#ifndef TRACEFAN_READER_USERS_H
#define TRACEFAN_READER_USERS_H

#include "reader/policy.h"

struct users_consumer;
struct users_probe;

struct users {
	struct users_consumer *consumers; /* lists */
	struct users_probe *probes;
};

/* The router is gone, and everybody with it. */
void users_forget(struct users *users);

/* All return an enum exit_status; on any but EXIT_DONE *ret_failure says why: which limit, and what
 * to do. */

/* A consumer attaches with a ring of so many bytes, under the router's number for it. */
int users_attach(struct users *users, const struct policy *policy,
	const struct policy_identity *identity, uint64_t number, uint64_t ring,
	struct control_failure *ret_failure);
/* It has left; one that was never there changes nothing. True when it was. */
bool users_leave(struct users *users, uint64_t number);

/* Whose consumer it is. False: there is no such consumer. */
bool users_who(const struct users *users, uint64_t number, uid_t *ret);

/* May the user have one more probe? */
int users_room(const struct users *users, const struct policy *policy,
	const struct policy_identity *identity, struct control_failure *ret_failure);
/* The user has it. Returns 0 or -ENOMEM. */
int users_own(struct users *users, uid_t uid, uint64_t probe);
/* And has one less of it. False when the user had none. */
bool users_disown(struct users *users, uid_t uid, uint64_t probe);

#endif
