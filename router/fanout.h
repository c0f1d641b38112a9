/* Who gets which event: the table from the kernel's event number to the traces that want it, and the copy
 * into each consumer's ring. */
#ifndef TRACEFAN_ROUTER_FANOUT_H
#define TRACEFAN_ROUTER_FANOUT_H

#include "router/catalog.h"
#include "router/event_record.h"
#include "router/merge.h"
#include "router/outlet.h"
#include "router/stacks.h"
#include "router/tasks.h"
#include "router/text_join.h"
#include "shm/control_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct route;
struct filter_program;

/* An event as the session itself looks at it. */
struct own_event {
	const struct schema *schema;
	const void *payload;
	size_t size;
	uint64_t time;
	int32_t tid; /* whose it is; -1: not known */
};

/* Where a trace stands in the stream. */
enum trace_stage {
	TRACE_OFF,     /* takes nothing */
	TRACE_WAITING, /* takes events from the first one on that is not older than `since` */
	TRACE_LIVE,
	TRACE_CLOSING, /* live until an event that is younger than `until`: what was committed before it was
			* disabled still belongs to it */
};

/* A consumer's handle on a probe. Owned by the fan-out. */
struct trace {
	/* What each event touches: a line of the cache. */
	_Alignas(64) uint64_t id;
	struct outlet *outlet;
	bool detailed;  /* its consumer wants to know whose each event is */
	uint8_t stacks; /* enum record_stack_kind: wanted with its events */
	struct ledger_trace ledger;
	uint64_t probe_id;
	uint32_t owner;  /* the user that the reader knows as the probe's */
	bool own;        /* takes only events of the owner's processes */
	uint32_t rate, owner_rate; /* events per second of this probe, and of all the owner's; 0: any number */
	uint64_t rate_base;        /* its `decoded` when the window began */
	bool in_task;    /* its events never interrupt one: their flags, which may be junk, needn't be looked at */
	struct route *route;
	struct trace *next_of_outlet; /* among those of its list */
	enum trace_stage stage;
	uint64_t since, until; /* ns */
	uint32_t since_cpu;    /* of events at `since`: from this CPU on */
	/* It was started again before all was told that came before it was stopped. */
	bool reopens;
	uint64_t next_since, next_until;
	uint32_t next_cpu;
	uint64_t live_from;    /* the route's `told` when it went live */
	struct filter_program *filter;        /* NULL: everything */
	struct filter_program *kernel_filter; /* the same for the kernel's own layout; in a raw session a copy */
	/* A filter that takes over once the kernel records all that it needs. */
	struct filter_program *next_filter, *next_kernel_filter;
	bool next_pending;
	uint16_t next_request; /* enum control_type: what asked for it */
	bool indexed; /* listed in the route's index */
	uint64_t missed_before; /* the route's when the trace was made */
	bool enabled;
	bool claiming; /* enabled, or about to be: the kernel must record what its filters take */
	char name[2 * CONTROL_NAME_MAX]; /* the consumer's, or "system:event" */
	uint64_t consumer; /* the consumer's number */
};
_Static_assert(offsetof(struct trace, ledger.lost_ring) < 64 && offsetof(struct trace, ledger.delivered) < 64,
	"what each event touches of a trace");

/* One kind of event. Lives as long as the fan-out, but for those of probes that are gone (fanout_route_drop). */
struct route {
	uint32_t holds; /* by requests and marks that will come back to it */
	bool gone;      /* to be freed once nothing holds it */
	struct catalog_event *event; /* NULL: known only from text lines */
	void *schema_bytes;          /* what consumers see: the binary or the text schema */
	size_t schema_size;
	struct schema schema;
	bool guarded; /* text: no event of this kind can hold a forged line */
	char *system, *name;
	char *shown; /* recordings: the name under which it was traced, or NULL */
	bool hidden; /* recordings: only the recorded session itself wanted it */
	struct trace **traces;
	uint32_t trace_count, trace_room;
	char *pushed;      /* what was last sent for the kernel's `filter` file; NULL: nothing yet */
	/* The live ones among them: those without a filter, to whom the event is copied as it is (room for every trace), and
	 * the rest. */
	struct trace **plain;
	uint32_t plain_count;
	/* And, in neither, those that take events of their owners' processes alone (room for every trace). */
	struct trace **owned;
	uint32_t owned_count;
	uint32_t flags_offset; /* of binary events: of the kernel's common_flags; UINT32_MAX: they have none */
	struct trace **detailed; /* those without a filter that are `detailed` (room for every trace) */
	uint32_t detailed_count;
	bool special; /* there are others than plain ones */
	struct trace *lone;         /* the only live trace with a filter, or NULL */
	struct filter_index *index; /* all live traces with a filter, made with the first of them */
	uint32_t facts;             /* enum filter_fact: what those look at */
	struct tasks *tasks;        /* the fan-out's */
	uint64_t seed;              /* of the index: the fan-out's */
	uint32_t changing;          /* traces that wait or close */
	uint8_t stacks;             /* what any of its traces wants */
	bool preemptible;           /* its events come from programs' probes */
	/* Where its binary events have the thread's id, and how long they must be to have one; UINT32_MAX: none has. */
	uint32_t pid_offset, pid_end;
	/* The fan-out's all_generation + 1: while it is that, all there is to do for the next event is to tell it to plain and
	 * special traces. 0: that has to be found out, because a trace came, went or moved on, or `own` was set. */
	uint64_t quick;
	uint64_t told;              /* events of this kind so far */
	uint64_t missed;            /* dynamic probes: the kernel's own count as of the last account */
	uint64_t kept;              /* hits that the kernel kept away, as of the last account; LEDGER_UNKNOWN (router/kept.h) */
	bool counted;               /* a probe whose hits the kernel counts, and whose events all came to this router */
	uint64_t lost_before;       /* counted: events of all kinds that were lost before it began */
	uint64_t unclaimed;         /* events that came while nobody had a trace of it, and are not among `told` */
	uint32_t all_seen; /* the fan-out's all_generation when the all-events consumers got their traces */
	/* The session's own use of the event. */
	void (*own)(void *context, const struct own_event *event);
	bool own_first; /* before the consumers' use; else after it */
	void *own_context;
	uint64_t own_probe; /* live sessions: what that use holds of the reader's */
	struct route *next_name; /* hash chain of the text lookup */
};

#define FANOUT_NAMES 1024
#define FANOUT_WINDOW 1024

/* An event that a trace has taken and that is told later. Its members are words, as are those of struct
 * event_view. */
struct fanout_later {
	struct trace *trace;
	const void *payload;
	const char *comm;
	uint64_t time;
	uint64_t payload_size;
	int64_t pid;
	uint64_t cpu;
	uint64_t flags;
};

/* A ring that some of them go to. */
struct fanout_lane {
	struct outlet *outlet;
	uint32_t count;
	uint32_t end; /* behind the last of its own in `order` */
};

/* Events are told ring by ring: so what belongs to a ring is fetched once for several. What they point to stays until then. */
struct fanout_window {
	uint32_t count;
	struct fanout_later later[FANOUT_WINDOW];
	/* Made when they are told. */
	uint16_t order[FANOUT_WINDOW], lane_of[FANOUT_WINDOW];
	struct fanout_lane lanes[FANOUT_WINDOW]; /* as each ring came first */
};

/* Bytes that the fields of a line may come to. */
#define FANOUT_TEXT_MAX (128U << 10)

struct fanout {
	struct catalog *catalog;
	bool text, big_endian;
	bool foreign; /* the kernel's byte order is not this machine's */
	uint64_t seed; /* random: consumers choose the values that are hashed */
	struct route **by_type;  /* 65536 places */
	struct route *by_name[FANOUT_NAMES];
	struct route **routes;
	size_t route_count, route_room;
	struct tasks tasks;
	/* Called before the first of the session's own events that is not older than this, which changes the tasks. */
	uint64_t snapshot_due; /* ns; UINT64_MAX: never */
	void (*snapshot)(void *context);
	const struct outlet *last_told; /* whose ring the last event's record went to; to be compared only */
	struct outlet *dirty, **dirty_end; /* in the order in which they are woken */
	uint64_t woken_until; /* ns: as if the last consumer had been woken then, each at its time */
	uint64_t held;        /* ns: since when somebody has waited to be woken; 0: nobody waits */
	struct stacks stacks;
	bool waits; /* for the stacks of `awaiting`, the merge's current event: nothing is told before it */
	struct merge_event awaiting;
	uint64_t waits_until; /* ns, CLOCK_MONOTONIC: then a quiet CPU is believed; 0: nothing waits */
	uint64_t last_time; /* of the last event told */
	uint64_t decoded, undecodable;
	uint64_t unrouted;  /* decoded, of a kind that nobody asked for */
	uint32_t all_generation; /* raised when a consumer of all events comes */
	/* A kind of event is met that the consumers of all events have no trace of yet. */
	void (*unseen)(void *context, struct route *route);
	void *unseen_context;
	struct fanout_window window;
	uint64_t *text_payload; /* of the line that is told; read by 64-bit words (the bitmap of present fields) */
};

/* Returns 0 or -errno. `catalog` must outlive the fan-out. */
int fanout_init(struct fanout *fanout, struct catalog *catalog, bool text, bool big_endian);
void fanout_release(struct fanout *fanout);

/* The route of an event, made if it isn't there. Returns 0 or -errno. */
int fanout_route(struct fanout *fanout, struct catalog_event *event, struct route **ret);
/* The same for an event that is known by one of its lines only. */
int fanout_text_route(struct fanout *fanout, const struct text_piece *name, const struct text_piece *body,
	struct route **ret);

/* The route of an event by what the reader has of it: its format file or, in a replayed text log, one of its lines.
 * Returns 0, -EBADMSG (*ret_reason, static, says why) or another -errno. */
int fanout_describe(struct fanout *fanout, const char *system, const char *text, size_t size, struct route **ret,
	const char **ret_reason);

/* The probe behind it is gone: if nobody has a trace of it, neither is it found any more, nor its event. */
void fanout_route_drop(struct fanout *fanout, struct route *route);
struct route *fanout_route_hold(struct route *route);
/* Ends a hold: the route may be gone then. */
void fanout_route_let_go(struct route *route);

/* The session itself looks at the route's events: after the consumers or, `first`, before them. */
void fanout_route_use(struct route *route, bool first, void (*own)(void *context, const struct own_event *event), void *context);

/* Adds a trace, which takes nothing yet. Returns 0 or -ENOMEM. */
int fanout_trace_add(struct route *route, const struct trace *model, struct trace **ret);
void fanout_trace_remove(struct trace *trace);
/* Moves the traces of a route on that wait or close, before an event of this place is told. */
void fanout_traces_settle(struct route *route, uint64_t time, uint32_t cpu);
/* The trace takes what does not lie before the place (since, cpu) of the merged order, or all from now on
 * when `since` is 0. Returns 0 or -ENOMEM. */
int fanout_trace_start(struct trace *trace, uint64_t since, uint32_t cpu);
/* The trace takes nothing that is younger than `until`. */
void fanout_trace_stop(struct trace *trace, uint64_t until);
/* Gives it other filters, which are taken over. On -ENOMEM it keeps the old ones. */
int fanout_trace_filter(struct trace *trace, struct filter_program *filter, struct filter_program *kernel_filter);
/* Its side of the ledger, as of now. */
struct ledger_trace fanout_trace_ledger(const struct trace *trace);
/* An event that was told to a trace was overwritten in its ring before it was read. */
void fanout_event_gone(struct outlet *outlet, uint64_t trace_id);
/* Writes down in the outlet's ring what its traces' columns are, should this process die. */
void fanout_columns(struct outlet *outlet);
/* The route of an event by its name, or NULL. */
struct route *fanout_route_named(const struct fanout *fanout, const char *name, size_t size);
struct trace *fanout_trace_find(const struct fanout *fanout, uint64_t id);

/* The next event to tell, which may be one that waited. Returns as merge_next. */
int fanout_next(struct fanout *fanout, struct merge *merge, struct merge_event *ret);
/* Tells what was put off. While the merge's events are drained this stands before anything else is written to a ring. */
void fanout_catch_up(struct fanout *fanout);
/* Tells one event of the merged binary stream to everybody whose it is. False: it has to wait for its stacks. */
bool fanout_event(struct fanout *fanout, const struct merge_event *event);
/* Tells all that the merge gives out. */
void fanout_drain(struct fanout *fanout, struct merge *merge);
/* Tells one event of a text stream, unless its text turns out to go on in the next line. Returns an enum
 * text_join_verdict. */
int fanout_text(struct fanout *fanout, const struct text_joined *joined);

void fanout_touch(struct fanout *fanout, struct outlet *outlet);
/* Publishes every ring that was written. Who sleeps may be left asleep until fanout_wake, which has to come
 * before this process sleeps. */
void fanout_publish(struct fanout *fanout);
/* Publishes what is left and wakes those who sleep and have something to read, those that waited longest first; `now` in
 * ns. Where very many sleep and wake, the rest wait for their turn, 16 ms at most; returns when that comes, UINT64_MAX: nobody
 * waits. */
uint64_t fanout_wake(struct fanout *fanout, uint64_t now);
/* An outlet goes away. */
void fanout_forget(struct fanout *fanout, struct outlet *outlet);

#endif
