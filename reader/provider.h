/* What stands behind the router's requests: the kernel's tracefs (live.c) or a recording
 * (recorded.c). The requests' code checks who asks and in which state; a provider does it. Methods
 * that can fail towards a consumer return an enum exit_status and fill in the failure; those that
 * make a blob return its descriptor, owned by the caller, or -errno. */
#ifndef TRACEFAN_READER_PROVIDER_H
#define TRACEFAN_READER_PROVIDER_H

#include "reader/facts.h"
#include "shm/control_abi.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How long, in ns, what a router asked for outlives it. */
#define PROVIDER_GRACE UINT64_C(5000000000)

struct provider;

struct provider_created {
	uint64_t id;
	bool shared;
	int format; /* blob, owned by the caller */
	char system[CONTROL_NAME_MAX];
	char event[CONTROL_NAME_MAX];
};

struct provider_ops {
	int (*facts)(struct provider *provider);
	int (*names)(struct provider *provider);
	int (*account)(struct provider *provider);
	/* The names of the events that there are, a line "SYSTEM:EVENT" each; 0 or -errno. */
	int (*events)(struct provider *provider, struct facts *ret);
	int (*create)(struct provider *provider, const struct control_create *create, int target,
		struct provider_created *ret, struct control_failure *ret_failure);
	int (*enable)(struct provider *provider, uint64_t id, bool enabled,
		struct control_failure *ret_failure);
	int (*filter)(struct provider *provider, uint64_t id, const char *filter,
		struct control_failure *ret_failure);
	int (*close_probe)(
		struct provider *provider, uint64_t id, struct control_failure *ret_failure);
	/* What the router had from a reader that died; NULL where nobody takes over. */
	int (*keep)(struct provider *provider, uint64_t id, bool enabled,
		struct control_failure *ret_failure);
	/* The probe is the router's own, and no consumer's. May be NULL. */
	void (*own)(struct provider *provider, uint64_t id);
	/* Removes what was kept for a better moment, if that has come. Returns since when, in ns, events may be
	 * missing uncounted, by that or otherwise; 0: none are. May be NULL. */
	uint64_t (*tidy)(struct provider *provider);
	/* Keeps a process out of the trace (`number` is the router's for it), or lets it in again.
	 */
	int (*exclude)(struct provider *provider, uint64_t number, pid_t process);
	void (*include)(struct provider *provider, uint64_t number);
	/* When `renew` is to be called, LOOP_NEVER: it need not be. May both be NULL. */
	uint64_t (*due)(const struct provider *provider);
	void (*renew)(struct provider *provider);
	/* The router is gone; and: it has been gone for long enough. */
	void (*orphan)(struct provider *provider);
	void (*sweep)(struct provider *provider);
	/* No more events. */
	void (*stop)(struct provider *provider);
	uint32_t (*probes)(const struct provider *provider);
	void (*close)(struct provider *provider);
};

struct provider {
	const struct provider_ops *ops;
	/* For the router's welcome. */
	uint32_t source; /* enum control_source */
	uint32_t flags;  /* enum control_session_flag */
	uint32_t cpu_count;
	char group[CONTROL_NAME_MAX];
	char tag[CONTROL_NAME_MAX];
};

#endif
