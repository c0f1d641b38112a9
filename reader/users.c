#include "reader/users.h"

#include "base/exit_status.h"
#include "shm/control.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct users_consumer {
	struct users_consumer *next;
	uint64_t number, ring;
	uid_t uid;
};

struct users_probe {
	struct users_probe *next;
	uint64_t probe;
	uint32_t references;
	uid_t uid;
};

void users_forget(struct users *users)
{
	while (users->consumers) {
		struct users_consumer *consumer = users->consumers;

		users->consumers = consumer->next;
		free(consumer);
	}
	while (users->probes) {
		struct users_probe *probe = users->probes;

		users->probes = probe->next;
		free(probe);
	}
}

/* ---- limits ---- */

__attribute__((format(printf, 5, 6))) static int reached(const struct policy *policy,
	const struct policy_identity *identity, const struct policy_limits *limits,
	struct control_failure *failure, const char *format, ...)
{
	char what[128], where[POLICY_SHOWN_MAX + 160] = "the usual limit";
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(what, sizeof(what), format, ap);
	va_end(ap);
	if (limits->line)
		(void)snprintf(where, sizeof(where), "the limit of %.100s, line %u (\"%s\")",
			policy->path, limits->line, limits->shown);
	control_failure_set(failure, EDQUOT, -1,
		"user %u has %s, %s: end some of it, or ask for more", (unsigned int)identity->uid,
		what, where);
	return EXIT_NOT_PERMITTED;
}

int users_attach(struct users *users, const struct policy *policy,
	const struct policy_identity *identity, uint64_t number, uint64_t ring,
	struct control_failure *ret_failure)
{
	const struct policy_limits *limits = policy_limits_of(policy, identity);
	struct users_consumer *consumer;
	uint32_t count = 0;
	uint64_t bytes = 0;

	for (consumer = users->consumers; consumer; consumer = consumer->next) {
		if (consumer->number == number) {
			control_failure_set(ret_failure, EEXIST, -1,
				"consumer %" PRIu64 " is attached already", number);
			return EXIT_FAILED;
		}
		count += consumer->uid == identity->uid;
		bytes += consumer->uid == identity->uid ? consumer->ring : 0;
	}
	if (count >= limits->consumers)
		return reached(policy, identity, limits, ret_failure,
			"%" PRIu32 " consumers attached", count);
	if (ring > limits->ring || bytes > limits->ring - ring)
		return reached(policy, identity, limits, ret_failure,
			"rings of %" PRIu64 " bytes and asks for one of %" PRIu64
			" (--ring asks for another size)",
			bytes, ring);
	consumer = malloc(sizeof(*consumer));
	if (!consumer) {
		control_failure_set(ret_failure, ENOMEM, -1, "no memory for the consumer");
		return EXIT_FAILED;
	}
	*consumer = (struct users_consumer){
		.next = users->consumers, .number = number, .ring = ring, .uid = identity->uid
	};
	users->consumers = consumer;
	return EXIT_DONE;
}

bool users_who(const struct users *users, uint64_t number, uid_t *ret)
{
	const struct users_consumer *consumer = users->consumers;

	while (consumer && consumer->number != number)
		consumer = consumer->next;
	if (consumer)
		*ret = consumer->uid;
	return consumer != NULL;
}

bool users_leave(struct users *users, uint64_t number)
{
	for (struct users_consumer **at = &users->consumers; *at; at = &(*at)->next) {
		struct users_consumer *consumer = *at;

		if (consumer->number != number)
			continue;
		*at = consumer->next;
		free(consumer);
		return true;
	}
	return false;
}

int users_room(const struct users *users, const struct policy *policy,
	const struct policy_identity *identity, struct control_failure *ret_failure)
{
	const struct policy_limits *limits = policy_limits_of(policy, identity);
	uint32_t count = 0;

	for (const struct users_probe *probe = users->probes; probe; probe = probe->next)
		count += probe->uid == identity->uid ? probe->references : 0;
	if (count < limits->probes)
		return EXIT_DONE;
	return reached(policy, identity, limits, ret_failure, "%" PRIu32 " probes", count);
}

/* ---- probes ---- */

static struct users_probe **find_probe(struct users *users, uid_t uid, uint64_t probe)
{
	struct users_probe **at = &users->probes;

	while (*at && ((*at)->uid != uid || (*at)->probe != probe))
		at = &(*at)->next;
	return at;
}

int users_own(struct users *users, uid_t uid, uint64_t probe)
{
	struct users_probe *owned = *find_probe(users, uid, probe);

	if (!owned) {
		owned = malloc(sizeof(*owned));
		if (!owned)
			return -ENOMEM;
		*owned = (struct users_probe){ .next = users->probes, .probe = probe, .uid = uid };
		users->probes = owned;
	}
	owned->references++;
	return 0;
}

bool users_disown(struct users *users, uid_t uid, uint64_t probe)
{
	struct users_probe **at = find_probe(users, uid, probe), *owned = *at;

	if (!owned)
		return false;
	if (--owned->references)
		return true;
	*at = owned->next;
	free(owned);
	return true;
}
