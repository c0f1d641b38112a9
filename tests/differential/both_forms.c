#include "tests/differential/both_forms.h"

#include "base/checked.h"
#include "router/page.h"
#include "router/text_fields.h"
#include "router/text_join.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <cmocka.h>

/* The largest sub-buffer that is in use anywhere. */
#define PAGE_ROOM (64U << 10)

static struct both_event *add_event(struct both_events *events)
{
	if (events->count == events->room) {
		events->room = events->room ? events->room * 2 : 1024;
		events->at = realloc(events->at, events->room * sizeof(events->at[0]));
		assert_non_null(events->at);
	}
	events->at[events->count] = (struct both_event){ 0 };
	return &events->at[events->count++];
}

static void set_payload(struct both_event *event, const void *bytes, size_t size)
{
	event->payload = malloc(size);
	assert_non_null(event->payload);
	memcpy(event->payload, bytes, size);
	event->size = size;
}

void both_events_release(struct both_events *events)
{
	for (size_t i = 0; i < events->count; i++)
		free(events->at[i].payload);
	free(events->at);
	*events = (struct both_events){ 0 };
}

static bool host_is_big(void)
{
	const uint16_t probe = 1;

	return *(const uint8_t *)&probe == 0;
}

void both_forms_begin(struct both_forms *both, const char *part)
{
	memset(both, 0, sizeof(*both));
	trace_instance_create(&both->instance, part);
	assert_int_equal(catalog_create(host_is_big(), sizeof(long), &both->catalog), 0);
	assert_int_equal(trace_instance_write(&both->instance, "buffer_size_kb", "4096"), 0);
	assert_int_equal(trace_instance_write(&both->instance, "options/event-fork", "1"), 0);
	assert_int_equal(trace_instance_write(&both->instance, "options/markers", "1"), 0);
	assert_non_null(both_forms_add(both, "ftrace", "print"));
}

void both_forms_end(struct both_forms *both)
{
	trace_instance_remove(&both->instance);
	for (size_t i = 0; i < both->probe_count; i++)
		(void)trace_instance_write(&both->instance, both->probes[i].file, "-:%s/%s", both->instance.group,
			both->probes[i].name);
	for (size_t i = 0; i < both->kind_count; i++) {
		free(both->kinds[i]->text_bytes);
		free(both->kinds[i]);
	}
	catalog_release(both->catalog);
}

struct both_kind *both_forms_add(struct both_forms *both, const char *system, const char *name)
{
	struct catalog_event *event;
	const char *reason = "";
	struct both_kind *kind;
	char path[256], *text;
	size_t size;

	(void)snprintf(path, sizeof(path), "/events/%s/%s/format", system, name);
	text = trace_instance_read(&both->instance, path, &size);
	if (!text)
		return NULL;
	assert_true(both->kind_count < ARRAY_SIZE(both->kinds));
	assert_int_equal(catalog_add(both->catalog, system, text, size, &event, &reason), 0);
	free(text);
	kind = calloc(1, sizeof(*kind));
	assert_non_null(kind);
	assert_int_equal(text_schema_make(&event->schema, system, name, &kind->text_bytes, &size), 0);
	assert_int_equal(schema_view(kind->text_bytes, size, &kind->text), 0);
	kind->event = event;
	event->user = kind;
	both->kinds[both->kind_count++] = kind;
	return kind;
}

bool both_forms_enable(struct both_forms *both, const char *system, const char *name)
{
	char path[256];

	if (!both_forms_add(both, system, name))
		return false;
	(void)snprintf(path, sizeof(path), "events/%s/%s/enable", system, name);
	assert_int_equal(trace_instance_write(&both->instance, path, "1"), 0);
	return true;
}

struct both_kind *both_forms_kind(struct both_forms *both, const char *name)
{
	for (size_t i = 0; i < both->kind_count; i++)
		if (strcmp(both->kinds[i]->event->name, name) == 0)
			return both->kinds[i];
	fail_msg("no event %s", name);
	return NULL;
}

/* ---- probes ---- */

void both_forms_probe(struct both_forms *both, const char *file, char kind, const char *name, const char *place,
	const char *arguments)
{
	assert_true(both->probe_count < ARRAY_SIZE(both->probes));
	assert_int_equal(trace_instance_write(&both->instance, file, "%c:%s/%s %s %s", kind, both->instance.group, name, place,
		arguments), 0);
	both->probes[both->probe_count].file = file;
	(void)snprintf(both->probes[both->probe_count].name, sizeof(both->probes[0].name), "%s", name);
	both->probe_count++;
	assert_true(both_forms_enable(both, both->instance.group, name));
}

void both_forms_known_arguments(struct both_forms *both, const char *file, const char *place, const char *arguments,
	char *ret, size_t room)
{
	char words[2048], *rest = words, *word;
	size_t used = 0;

	assert_true(strlen(arguments) < sizeof(words));
	(void)snprintf(words, sizeof(words), "%s", arguments);
	ret[0] = '\0';
	while ((word = strtok_r(rest, " ", &rest)) != NULL) {
		if (trace_instance_write(&both->instance, file, "p:%s/trial %s %s", both->instance.group, place, word) < 0) {
			print_message("  this kernel does not know %s\n", word);
			continue;
		}
		assert_int_equal(trace_instance_write(&both->instance, file, "-:%s/trial", both->instance.group), 0);
		used += (size_t)snprintf(ret + used, room - used, "%s ", word);
		assert_true(used < room);
	}
}

void both_forms_trace_child(struct both_forms *both, void (*work)(void))
{
	int start[2], status;
	pid_t child;
	char byte = 0;

	assert_int_equal(pipe2(start, O_CLOEXEC), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (read(start[0], &byte, 1) == 1)
			work();
		_exit(0);
	}
	assert_int_equal(trace_instance_write(&both->instance, "set_event_pid", "%d", (int)child), 0);
	assert_int_equal(trace_instance_write(&both->instance, "tracing_on", "1"), 0);
	assert_int_equal(write(start[1], &byte, 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(trace_instance_write(&both->instance, "tracing_on", "0"), 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	(void)close(start[0]);
	(void)close(start[1]);
}

/* ---- text ---- */

struct taker {
	struct both_forms *both;
	struct both_events *events;
};

static struct both_kind *kind_of_line(const struct both_forms *both, const struct text_line *line)
{
	char name[256];

	if (text_event_name(line, name, sizeof(name)))
		return NULL;
	if (strcmp(name, "tracing_mark_write") == 0)
		(void)strcpy(name, "print");
	for (size_t i = 0; i < both->kind_count; i++)
		if (strcmp(both->kinds[i]->event->name, name) == 0)
			return both->kinds[i];
	return NULL;
}

/* What a router does with a line. */
static int take_text(void *context, const struct text_joined *joined)
{
	const struct text_line *line = &joined->line;
	struct taker *taker = context;
	struct both_events *events = taker->events;
	struct both_event *event;
	struct both_kind *kind;
	uint64_t payload[65536 / 8];
	size_t size = 0;
	bool suspect = false, guarded;
	int r;

	if (line->kind == TEXT_LOST) {
		assert_true(line->cpu < ARRAY_SIZE(events->lost) && line->lost != TEXT_COUNT_UNKNOWN);
		events->lost[line->cpu] += line->lost;
	}
	if (line->kind != TEXT_EVENT)
		return TEXT_JOIN_DONE;
	kind = kind_of_line(taker->both, line);
	if (!kind) {
		fail_msg("an event that isn't traced: %.*s", (int)line->whole.size, line->whole.at);
		return -EINVAL;
	}
	r = text_fields_encode(&kind->text, &line->body, payload, sizeof(payload), &size, &suspect);
	if (r == -EAGAIN && !joined->last)
		return TEXT_JOIN_OPEN;
	guarded = text_schema_is_guarded(&kind->text);
	event = add_event(events);
	event->kind = kind->event;
	event->cpu = line->cpu;
	event->pid = line->pid;
	event->time = line->time;
	(void)snprintf(event->comm, sizeof(event->comm), "%.*s", (int)line->comm.size, line->comm.at);
	event->suspect = suspect || joined->doubtful || (joined->swallowed && !guarded);
	event->partial = joined->partial;
	event->swallowed = joined->swallowed;
	set_payload(event, payload, size);
	return guarded ? TEXT_JOIN_SURE : TEXT_JOIN_DONE;
}

void both_forms_read_text(struct both_forms *both, const char *file, struct both_events *ret)
{
	struct taker taker = { .both = both, .events = ret };
	struct text_join join;
	size_t size;
	char *text = trace_instance_read(&both->instance, file, &size);

	assert_non_null(text);
	text_join_init(&join);
	assert_int_equal(text_join_feed(&join, text, size, take_text, &taker), 0);
	assert_int_equal(text_join_end(&join, take_text, &taker), 0);
	text_join_release(&join);
	free(text);
}

/* ---- bytes ---- */

static void read_page(const struct both_forms *both, const struct page_layout *layout, const void *page, size_t size,
	uint32_t cpu, struct both_events *ret)
{
	struct page_cursor cursor;
	struct page_event raw = { 0 };

	assert_int_equal(page_open(&cursor, layout, page, size), 0);
	while (page_next(&cursor, &raw) == 1) {
		struct both_event *event = add_event(ret);
		uint16_t type;

		memcpy(&type, raw.data, sizeof(type));
		event->kind = catalog_by_type(both->catalog, type);
		event->cpu = cpu;
		event->time = raw.time;
		set_payload(event, raw.data, raw.size);
	}
	assert_int_equal(cursor.error, PAGE_OK);
}

void both_forms_read_raw(struct both_forms *both, uint32_t cpu, struct both_events *ret)
{
	struct page_layout layout;
	static _Alignas(uint64_t) uint8_t page[PAGE_ROOM];
	char path[64];
	size_t size = 0;
	char *header = trace_instance_read(&both->instance, "/events/header_page", &size);
	ssize_t n;
	int fd;

	assert_non_null(header);
	assert_int_equal(page_layout_parse(header, size, host_is_big(), &layout), 0);
	free(header);
	assert_true(layout.size <= sizeof(page));
	(void)snprintf(path, sizeof(path), "per_cpu/cpu%u/trace_pipe_raw", cpu);
	fd = trace_instance_open(&both->instance, path, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	while ((n = read(fd, page, layout.size)) > 0)
		read_page(both, &layout, page, (size_t)n, cpu, ret);
	(void)close(fd);
}
