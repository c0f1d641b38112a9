#include "reader/facts.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "reader/flow.h"
#include "reader/probe_name.h"
#include "reader/tracedir.h"
#include "shm/control_abi.h"
#include "shm/segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FACTS_MAX   (256U << 20)
#define FACTS_ALIGN 8

void facts_release(struct facts *facts)
{
	free(facts->data);
	*facts = (struct facts){ 0 };
}

void facts_append(struct facts *facts, const void *data, size_t size)
{
	if (facts->error || !size)
		return;
	if (size > FACTS_MAX - facts->size) {
		facts->error = -EFBIG;
		return;
	}
	if (size > facts->room - facts->size) {
		size_t room = facts->room ? facts->room * 2 : 16384;
		char *more;

		while (room - facts->size < size)
			room *= 2;
		more = realloc(facts->data, room);
		if (!more) {
			facts->error = -ENOMEM;
			return;
		}
		facts->data = more;
		facts->room = room;
	}
	memcpy(facts->data + facts->size, data, size);
	facts->size += size;
}

void facts_add(struct facts *facts, uint32_t fact, uint32_t id, const void *data, size_t size)
{
	static const char zeroes[FACTS_ALIGN];
	struct control_fact_header header = { .fact = fact, .id = id, .size = size };

	facts_append(facts, &header, sizeof(header));
	facts_append(facts, data, size);
	facts_append(facts, zeroes, align_up(size, FACTS_ALIGN) - size);
}

int facts_blob(const struct facts *facts, const char *name)
{
	return facts->error
		       ? facts->error
		       : segment_blob_create(name, facts->data ? facts->data : "", facts->size);
}

/* Adds a file of tracefs; one that this kernel or a CPU lacks is left out. */
static void add_file_by(
	struct flow *flow, struct facts *facts, int folder, const char *path, uint32_t fact, uint32_t id)
{
	CLEANUP_FREE char *data = NULL;
	size_t size;
	int r = flow_read(flow, folder, path, &data, &size);

	if (r == 0)
		facts_add(facts, fact, id, data, size);
	/* Without it everything else would be taken for something that it is not. */
	else if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		facts->error = facts->error ? facts->error : r;
}

static void add_file(struct facts *facts, int folder, const char *path, uint32_t fact, uint32_t id)
{
	add_file_by(NULL, facts, folder, path, fact, id);
}

int facts_of_kernel(const struct instance *instance)
{
	const uint16_t probe = 1;
	uint8_t big_endian = *(const uint8_t *)&probe == 0;
	struct facts facts = { 0 };
	int fd;

	/* The instance's own, since its sub-buffers may be of another size than the top-level
	 * buffer's. */
	add_file(&facts, instance->dir, "events/header_page", FACT_HEADER_PAGE, 0);
	add_file(&facts, instance->dir, "events/header_event", FACT_HEADER_EVENT, 0);
	add_file(&facts, instance->root, "printk_formats", FACT_PRINTK_FORMATS, 0);
	add_file(&facts, instance->dir, "events/ftrace/kernel_stack/format", FACT_STACK_FORMAT, 0);
	add_file(&facts, instance->dir, "events/ftrace/user_stack/format", FACT_STACK_FORMAT, 1);
	facts_add(&facts, FACT_MACHINE, 0, &big_endian, sizeof(big_endian));
	fd = facts_blob(&facts, "tracefan-facts");
	facts_release(&facts);
	return fd;
}

int facts_of_account(const struct instance *instance)
{
	const struct instance_counts *cleared = &instance->cleared;
	struct facts facts = { 0 };
	char before[128];
	int fd;

	/* In the kernel's words, and as if of one more CPU: what it counted before it began anew. */
	(void)snprintf(before, sizeof(before), "read events: %llu\noverrun: %llu\ndropped events: %llu\n",
		(unsigned long long)cleared->read, (unsigned long long)cleared->overrun,
		(unsigned long long)cleared->dropped);
	facts_add(&facts, FACT_STATS, instance->cpu_count, before, strlen(before));
	for (uint32_t cpu = 0; cpu < instance->cpu_count; cpu++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
		add_file(&facts, instance->dir, path, FACT_STATS, cpu);
	}
	if (!instance->stopped)
		add_file(&facts, instance->dir, "tracing_on", FACT_TRACING_ON, 0);
	/* For these the kernel waits for whoever changes probes. */
	add_file_by(instance->flow, &facts, instance->root, "uprobe_profile", FACT_UPROBE_PROFILE, 0);
	add_file_by(instance->flow, &facts, instance->root, "kprobe_profile", FACT_KPROBE_PROFILE, 0);
	fd = facts_blob(&facts, "tracefan-account");
	facts_release(&facts);
	return fd;
}

int facts_of_events(const struct instance *instance, struct facts *ret)
{
	CLEANUP_FREE char *text = NULL;
	struct facts facts = { 0 };
	char *line, *next = NULL;
	int r = tracedir_read(instance->root, "available_events", &text, NULL);

	if (r < 0)
		return r;
	for (line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
		if (probe_name_is_group(line))
			continue;
		facts_append(&facts, line, strlen(line));
		facts_append(&facts, "\n", 1);
	}
	*ret = facts;
	return 0;
}
