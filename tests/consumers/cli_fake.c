#include "tests/consumers/cli_fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FAKE_TRACES 8
#define FAKE_TIME   1000000000123ULL
#define FAKE_WALL   1714979289000000456ULL

struct tfan {
	char scenario[64];
	struct tfan_failure failure;
	char message[256];
	struct tfan_trace traces[FAKE_TRACES];
	size_t trace_count;
	struct tfan_event event;
	uint64_t step; /* of the scenario */
	uint64_t burst;
	bool enabled, flush;
	int fd;
	struct tfan_session session;
};

static const struct tfan_field fake_fields[] = {
	{ .name = "common_pid", .type = "int", .kind = TFAN_INTEGER, .size = 4, .is_signed = true, .is_common = true },
	{ .name = "path", .type = "char[]", .kind = TFAN_STRING, .size = 1 },
	{ .name = "n", .type = "int", .kind = TFAN_INTEGER, .size = 4, .is_signed = true },
};

static int fake_fail(struct tfan *tfan, enum tfan_class category, int error, int position, const char *message)
{
	(void)snprintf(tfan->message, sizeof(tfan->message), "%s", message);
	tfan->failure = (struct tfan_failure){ category, error, position, tfan->message };
	return -error;
}

static bool fake_is(const struct tfan *tfan, const char *scenario)
{
	return strcmp(tfan->scenario, scenario) == 0;
}

int tfan_open(const struct tfan_options *options, struct tfan **ret)
{
	struct tfan *tfan = calloc(1, sizeof(*tfan));

	if (!tfan)
		return -ENOMEM;
	*ret = tfan;
	tfan->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)snprintf(tfan->scenario, sizeof(tfan->scenario), "%s", options->session);
	tfan->burst = 3;
	if (sscanf(tfan->scenario, "burst-%lu", &tfan->burst) == 1)
		(void)snprintf(tfan->scenario, sizeof(tfan->scenario), "plain");
	if (fake_is(tfan, "endless"))
		tfan->burst = UINT64_MAX;
	if (fake_is(tfan, "denied"))
		return fake_fail(tfan, TFAN_NOT_PERMITTED, EACCES, -1, "not a member of the session's group");
	return 0;
}

const struct tfan_session *tfan_session(const struct tfan *tfan)
{
	return &tfan->session;
}

void tfan_close(struct tfan *tfan)
{
	if (!tfan)
		return;
	(void)close(tfan->fd);
	free(tfan);
}

const struct tfan_failure *tfan_failure(const struct tfan *tfan)
{
	return &tfan->failure;
}

static void fake_name(const char *probe, char *name, size_t size)
{
	const char *place = strchr(probe, ':');
	const char *equals = strchr(probe, '=');

	if (equals && place && equals < place)
		(void)snprintf(name, size, "%.*s", (int)(equals - probe), probe);
	else
		(void)snprintf(name, size, "%.*s", place ? (int)strcspn(place + 1, " ") : 0, place ? place + 1 : "");
}

static void fake_wake(struct tfan *tfan)
{
	(void)eventfd_write(tfan->fd, 1);
}

int tfan_trace_create(struct tfan *tfan, const char *probe, struct tfan_trace **ret)
{
	const char *wrong = strstr(probe, "nosuch");
	struct tfan_trace *trace = &tfan->traces[tfan->trace_count];

	if (wrong)
		return fake_fail(tfan, TFAN_LOCATION, ENOENT, (int)(wrong - probe), "there is no such event");
	wrong = strstr(probe, "badarg");
	if (wrong)
		return fake_fail(tfan, TFAN_FETCH_ARG, EINVAL, (int)(wrong - probe), "Unknown type");
	if (tfan->trace_count == FAKE_TRACES)
		return fake_fail(tfan, TFAN_FAILED, ENOSPC, -1, "too many traces");
	*trace = (struct tfan_trace){
		.tfan = tfan,
		.id = 7 + tfan->trace_count,
		.fields = fake_fields,
		.field_count = sizeof(fake_fields) / sizeof(fake_fields[0]),
	};
	fake_name(probe, trace->name, sizeof(trace->name));
	wrong = strstr(probe, " if ");
	(void)snprintf(trace->filter, sizeof(trace->filter), "%s", wrong ? wrong + 4 : "");
	tfan->trace_count++;
	*ret = trace;
	return 0;
}

int tfan_set_filter(struct tfan *tfan, const char *filter)
{
	const char *wrong = strstr(filter, "nosuch");

	if (wrong)
		return fake_fail(tfan, TFAN_USAGE, EINVAL, (int)(wrong - filter), "there is no such field");
	for (size_t i = 0; i < tfan->trace_count; i++) {
		struct tfan_trace *trace = &tfan->traces[i];
		char own[sizeof(trace->filter)];

		memcpy(own, trace->filter, sizeof(own));
		(void)snprintf(trace->filter, sizeof(trace->filter), *own ? "(%.100s) && (%.100s)" : "%.0s%.100s", own, filter);
	}
	return 0;
}

/* Typed traces are the observers' alone, which have real sessions to be tested with. */
int tfan_trace_bind(struct tfan *tfan, const char *place, const struct tfan_shape *shape, tfan_handler handler, void *context,
	struct tfan_trace **ret)
{
	(void)shape, (void)handler, (void)context, (void)ret;
	return fake_fail(tfan, TFAN_NOT_PERMITTED, EPERM, -1, place);
}

int tfan_trace_uprobe(struct tfan *tfan, const char *file, const char *location, const struct tfan_shape *shape,
	tfan_handler handler, void *context, struct tfan_trace **ret)
{
	(void)file, (void)shape, (void)handler, (void)context, (void)ret;
	return fake_fail(tfan, TFAN_NOT_PERMITTED, EPERM, -1, location);
}

void tfan_set_notice(struct tfan *tfan, void (*notice)(void *context, const struct tfan_event *event), void *context)
{
	(void)tfan, (void)notice, (void)context;
}

int tfan_dispatch(struct tfan *tfan, unsigned int most)
{
	(void)most;
	return fake_fail(tfan, TFAN_FAILED, ECONNRESET, -1, "the router is gone");
}

bool tfan_trace_has_stack(const struct tfan_trace *trace, enum tfan_stack which)
{
	(void)trace, (void)which;
	return false;
}

int tfan_event_stack(const struct tfan_event *event, enum tfan_stack which, size_t *ret_count)
{
	(void)event, (void)which, (void)ret_count;
	return -ENODATA;
}

int tfan_event_frame(const struct tfan_event *event, enum tfan_stack which, size_t i, struct tfan_frame *ret)
{
	(void)event, (void)which, (void)i, (void)ret;
	return -ENODATA;
}

int tfan_field_find(const struct tfan_trace *trace, const char *name)
{
	(void)trace, (void)name;
	return -ENOENT;
}

int tfan_trace_set_enabled(struct tfan_trace *trace, bool enabled)
{
	if (enabled && fake_is(trace->tfan, "deaf"))
		return fake_fail(trace->tfan, TFAN_BUSY, EBUSY, -1, "the probe is held by somebody");
	trace->enabled = enabled;
	trace->tfan->enabled = enabled;
	fake_wake(trace->tfan);
	return 0;
}

int tfan_list(struct tfan *tfan, const char **ret)
{
	if (fake_is(tfan, "deaf"))
		return fake_fail(tfan, TFAN_FAILED, ECONNRESET, -1, "the router is gone");
	*ret = fake_is(tfan, "hostile") ? "a:b\x1b\n" : "sched:sched_switch\nsched:sched_wakeup\nsyscalls:sys_enter_openat\n";
	return 0;
}

/* As if the kernel could have all of it but globs. */
int tfan_trace_explain(struct tfan_trace *trace, struct tfan_explanation *ret)
{
	bool glob = strchr(trace->filter, '~') != NULL;

	if (fake_is(trace->tfan, "deaf"))
		return fake_fail(trace->tfan, TFAN_FAILED, ECONNRESET, -1, "the router is gone");
	*ret = (struct tfan_explanation){ glob ? "0" : trace->filter, !glob, trace->filter, "0" };
	return 0;
}

int tfan_flush(struct tfan *tfan)
{
	tfan->flush = true;
	fake_wake(tfan);
	return 0;
}

uint64_t tfan_trace_id(const struct tfan_trace *trace)
{
	return trace->id;
}

const char *tfan_trace_name(const struct tfan_trace *trace)
{
	return trace->name;
}

struct tfan_trace *tfan_trace_at(const struct tfan *tfan, size_t i)
{
	return i < tfan->trace_count ? (struct tfan_trace *)&tfan->traces[i] : NULL;
}

int tfan_trace_ledger(struct tfan_trace *trace, struct tfan_ledger *ret)
{
	if (fake_is(trace->tfan, "ledgerless"))
		return fake_fail(trace->tfan, TFAN_FAILED, ECONNRESET, -1, "the router is gone");
	*ret = trace->ledger;
	return 0;
}

int tfan_session_ledger(struct tfan *tfan, struct tfan_session_ledger *ret)
{
	struct tfan_session_ledger ledger = { 0 };

	if (fake_is(tfan, "ledgerless"))
		return fake_fail(tfan, TFAN_FAILED, ECONNRESET, -1, "the router is gone");
	for (size_t i = 0; i < tfan->trace_count; i++)
		ledger.decoded += tfan->traces[i].ledger.decoded;
	ledger.lost_kernel = fake_is(tfan, "lossy") ? 120 : 0;
	ledger.committed = ledger.decoded + ledger.lost_kernel;
	*ret = ledger;
	return 0;
}

bool tfan_is_readerless(const struct tfan *tfan)
{
	return fake_is(tfan, "readerless");
}

int tfan_consumers(struct tfan *tfan, const struct tfan_consumer **ret, size_t *ret_count, bool *ret_readerless)
{
	static const struct tfan_consumer_trace traces[] = {
		{ .id = 7, .name = "sys:one", .enabled = true, .ledger = { .decoded = 6, .delivered = 3, .filtered = 2, .lost_ring = 1, .gave_up = 4 } },
		{ .id = 8, .name = "two\n" },
	};
	static const struct tfan_consumer consumers[] = {
		{ .number = 5, .uid = 1000, .pid = 42, .program = "agent\"", .ring_size = 65536, .ring_used = 96,
			.overflow = TFAN_OVERWRITE, .traces = traces, .trace_count = 2 },
		{ .number = 4, .uid = 1001, .pid = 43, .program = "", .ring_size = 131072 },
	};

	*ret = consumers;
	*ret_count = fake_is(tfan, "plain") ? 2 : 0;
	*ret_readerless = tfan_is_readerless(tfan);
	return 0;
}

size_t tfan_field_count(const struct tfan_trace *trace)
{
	return trace->field_count;
}

int tfan_field_at(const struct tfan_trace *trace, size_t i, struct tfan_field *ret)
{
	if (i >= trace->field_count)
		return -EINVAL;
	*ret = trace->fields[i];
	return 0;
}

/* ---- the scenarios ---- */

static void fake_columns(struct tfan *tfan, enum tfan_kind kind)
{
	tfan->event = (struct tfan_event){
		.kind = kind,
		.time = FAKE_TIME + tfan->step * 1000,
		.wall = FAKE_WALL + tfan->step * 1000,
		.cpu = (int)(tfan->step % 2),
		.pid = 42,
		.comm = "cat",
	};
}

/* The step-th event: the traces take turns. */
static void fake_event(struct tfan *tfan)
{
	static const char path[] = "/etc/hosts";
	struct tfan_trace *trace = &tfan->traces[tfan->step % tfan->trace_count];

	fake_columns(tfan, TFAN_EVENT);
	tfan->event.trace = trace;
	tfan->event.values[1] = (struct fake_value){ .bytes = path, .size = sizeof(path) - 1 };
	tfan->event.values[2] = (struct fake_value){ .number = (uint64_t)(int64_t)(1 - (int)(tfan->step / tfan->trace_count)) };
	trace->ledger.decoded++;
	trace->ledger.delivered++;
	tfan->step++;
}

/* Every byte but NUL, in pieces, as a string, a thread's name and alone. */
static void fake_hostile(struct tfan *tfan)
{
	static char comms[256][16], every[256];
	unsigned int byte = (unsigned int)(tfan->step % 255) + 1;

	fake_event(tfan);
	for (unsigned int i = 1; i < 256; i++)
		every[i - 1] = (char)i;
	(void)snprintf(comms[byte], sizeof(comms[byte]), "a b\"%c\xc3\xa4\xee\xbe\x80-[0]:", (int)byte);
	tfan->event.comm = comms[byte];
	tfan->event.values[1] = (struct fake_value){ .bytes = every + byte - 1, .size = 256 - byte };
}

static void fake_lost(struct tfan *tfan, enum tfan_kind kind, struct tfan_lost lost)
{
	fake_columns(tfan, kind);
	tfan->event.lost = lost;
	tfan->step++;
}

static int fake_lossy(struct tfan *tfan)
{
	switch (tfan->step) {
	case 1:
		fake_lost(tfan, TFAN_LOST, (struct tfan_lost){ TFAN_LOST_KERNEL, 1, true, 120, 1000, 2000 });
		return 1;
	case 2:
		fake_lost(tfan, TFAN_LOST, (struct tfan_lost){ TFAN_LOST_KERNEL, 0, false, 1, 3000, 4000 });
		return 1;
	case 3:
		fake_lost(tfan, TFAN_LOST, (struct tfan_lost){ TFAN_LOST_RING, -1, true, 5, 5000, 6000 });
		return 1;
	case 4:
		fake_lost(tfan, TFAN_GAP, (struct tfan_lost){ TFAN_LOST_READER, -1, true, 9, 7000, 8000 });
		return 1;
	case 0:
	case 5:
		fake_event(tfan);
		return 1;
	default:
		return 0;
	}
}

static int fake_end(struct tfan *tfan)
{
	static const struct {
		const char *scenario;
		enum tfan_end_reason reason;
		const char *message;
	} ends[] = {
		{ "finished", TFAN_END_FINISHED, "" },
		{ "stopped", TFAN_END_STOPPED, "by the operator" },
		{ "error", TFAN_END_ERROR, "the reader died" },
		{ "refused", TFAN_END_REFUSED, "the policy has changed" },
	};

	if (fake_is(tfan, "reset"))
		return fake_fail(tfan, TFAN_FAILED, ECONNRESET, -1, "the router is gone");
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (!fake_is(tfan, ends[i].scenario))
			continue;
		fake_columns(tfan, TFAN_END);
		tfan->event.reason = ends[i].reason;
		tfan->event.message = ends[i].message;
		return 1;
	}
	return 0;
}

static int fake_next(struct tfan *tfan)
{
	/* What was committed before the disabling still comes. */
	if (!tfan->enabled && (!tfan->flush || fake_is(tfan, "endless")))
		return 0;
	if (fake_is(tfan, "lossy"))
		return fake_lossy(tfan);
	if (fake_is(tfan, "gap") && tfan->step == 0) {
		fake_lost(tfan, TFAN_GAP, (struct tfan_lost){ TFAN_LOST_READER, -1, true, 0, 1000, 2000 });
		return 1;
	}
	if (fake_is(tfan, "hostile") && tfan->step < 255) {
		fake_hostile(tfan);
		return 1;
	}
	if (tfan->step / tfan->trace_count < tfan->burst) {
		fake_event(tfan);
		return 1;
	}
	return fake_end(tfan);
}

int tfan_next(struct tfan *tfan, const struct tfan_event **ret)
{
	eventfd_t woken;
	int r = fake_next(tfan);

	if (r == 0 && tfan->flush) {
		tfan->flush = false;
		fake_columns(tfan, TFAN_FLUSHED);
		r = 1;
	}
	if (r == 0)
		(void)eventfd_read(tfan->fd, &woken);
	if (r == 1)
		*ret = &tfan->event;
	return r;
}

int tfan_fd(struct tfan *tfan)
{
	return tfan->fd;
}

/* ---- one event ---- */

enum tfan_kind tfan_event_kind(const struct tfan_event *event)
{
	return event->kind;
}

struct tfan_trace *tfan_event_trace(const struct tfan_event *event)
{
	return event->trace;
}

uint64_t tfan_event_time(const struct tfan_event *event)
{
	return event->time;
}

uint64_t tfan_event_wall(const struct tfan_event *event)
{
	return event->wall;
}

int tfan_event_cpu(const struct tfan_event *event)
{
	return event->cpu;
}

int tfan_event_pid(const struct tfan_event *event)
{
	return event->pid;
}

const char *tfan_event_comm(const struct tfan_event *event)
{
	return event->comm;
}

bool tfan_event_late(const struct tfan_event *event)
{
	return event->late;
}

bool tfan_event_suspect(const struct tfan_event *event)
{
	return event->suspect;
}

int tfan_capture_state(struct tfan *tfan, unsigned int what)
{
	(void)tfan;
	(void)what;
	return 0;
}

int tfan_event_process(const struct tfan_event *event, struct tfan_process *ret)
{
	if (!event->process)
		return -ENODATA;
	*ret = *event->process;
	return 0;
}

int tfan_event_state(const struct tfan_event *event, struct tfan_state *ret)
{
	if (!event->state)
		return -EINVAL;
	*ret = *event->state;
	return 0;
}

bool tfan_event_partial(const struct tfan_event *event)
{
	return event->partial;
}

int tfan_event_u64(const struct tfan_event *event, size_t field, uint64_t *ret)
{
	const struct fake_value *value = &event->values[field];

	if (value->error)
		return value->error;
	*ret = value->number;
	return 0;
}

int tfan_event_bytes(const struct tfan_event *event, size_t field, const void **ret, size_t *ret_size)
{
	const struct fake_value *value = &event->values[field];

	if (value->error)
		return value->error;
	*ret = value->bytes;
	*ret_size = value->size;
	return 0;
}

int tfan_event_element(const struct tfan_event *event, size_t field, size_t i, uint64_t *ret)
{
	const struct fake_value *value = &event->values[field];
	unsigned int size = event->trace->fields[field].size;
	uint64_t element = 0;

	if (value->error)
		return value->error;
	if ((i + 1) * size > value->size)
		return -ERANGE;
	memcpy(&element, (const uint8_t *)value->bytes + i * size, size);
	*ret = element;
	return 0;
}

int tfan_event_lost(const struct tfan_event *event, struct tfan_lost *ret)
{
	if (event->kind != TFAN_LOST && event->kind != TFAN_GAP)
		return -EINVAL;
	*ret = event->lost;
	return 0;
}

int tfan_event_throttled(const struct tfan_event *event, struct tfan_throttled *ret)
{
	if (event->kind != TFAN_THROTTLED)
		return -EINVAL;
	*ret = (struct tfan_throttled){ .rate = 100, .count = 123, .since = 4000, .of_user = event->lost.counted };
	return 0;
}

int tfan_event_end(const struct tfan_event *event, enum tfan_end_reason *ret, const char **ret_message)
{
	if (event->kind != TFAN_END)
		return -EINVAL;
	*ret = event->reason;
	*ret_message = event->message;
	return 0;
}

/* ---- the operator's side ---- */

struct tfan_operator {
	struct tfan tfan; /* of which the scenario and the failure are used */
};

int tfan_operator_open(const char *directory, const char *session, struct tfan_operator **ret)
{
	struct tfan_operator *control = calloc(1, sizeof(*control));

	(void)directory;
	*ret = control;
	if (!control)
		return -ENOMEM;
	(void)snprintf(control->tfan.scenario, sizeof(control->tfan.scenario), "%s", session);
	if (fake_is(&control->tfan, "denied"))
		return fake_fail(&control->tfan, TFAN_NOT_PERMITTED, EACCES, -1, "operating a session needs root");
	if (fake_is(&control->tfan, "missing"))
		return fake_fail(&control->tfan, TFAN_MISSING, ENOENT, -1, "there is no such session");
	return 0;
}

void tfan_operator_set_patience(struct tfan_operator *control, unsigned int milliseconds)
{
	(void)control;
	(void)milliseconds;
}

int tfan_operator_reader(const struct tfan_operator *control)
{
	(void)control;
	return 11;
}

void tfan_operator_close(struct tfan_operator *control)
{
	free(control);
}

const struct tfan_failure *tfan_operator_failure(const struct tfan_operator *control)
{
	return &control->tfan.failure;
}

static int fake_operate(struct tfan_operator *control)
{
	if (fake_is(&control->tfan, "deaf"))
		return fake_fail(&control->tfan, TFAN_FAILED, ECONNRESET, -1, "the session closed the connection");
	return 0;
}

int tfan_operator_flush(struct tfan_operator *control)
{
	return fake_operate(control);
}

int tfan_operator_stop(struct tfan_operator *control)
{
	return fake_operate(control);
}

int tfan_operator_status(struct tfan_operator *control, struct tfan_operator_status *ret)
{
	if (fake_operate(control) < 0)
		return -ECONNRESET;
	*ret = (struct tfan_operator_status){
		.instance = "tracefan-x", .reader_pid = 11, .router_pid = fake_is(&control->tfan, "routerless") ? 0 : 12, .started = 1,
		.buffer_size = 8192U << 10, .subbuf_size = 4096, .cpus = 2, .probes = 5,
	};
	return 0;
}
