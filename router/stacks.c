#include "router/stacks.h"

#include <errno.h>
#include <string.h>

/* What may lie between an event and its stacks: events of interrupts, and of whatever a hypervisor's pause lets pile up. A
 * stack of any other event stands behind that one, which ends the search if it has the same key. */
#define STACKS_LOOK_MOST 64

/* Whose and in what an event is. */
struct stacks_key {
	uint32_t pid;
	uint8_t flags, preempt;
};

static bool field_at(const struct schema *schema, const char *name, uint32_t *ret)
{
	int i = schema_find(schema, name);

	if (i < 0)
		return false;
	*ret = schema->fields[i].offset;
	return true;
}

int stacks_learn(struct stacks *stacks, struct catalog *catalog, const char *text, size_t size, unsigned int long_size)
{
	struct stacks_format format = { 0 };
	struct catalog_event *event;
	const char *why;
	bool is_kernel;
	int r = catalog_add(catalog, "ftrace", text, size, &event, &why);

	if (r < 0)
		return r;
	is_kernel = strcmp(event->name, "kernel_stack") == 0;
	if (!field_at(&event->schema, "caller", &format.caller) ||
		!field_at(&event->schema, is_kernel ? "size" : "tgid", &format.number) ||
		!field_at(&event->schema, "common_pid", &stacks->pid) ||
		!field_at(&event->schema, "common_flags", &stacks->flags) ||
		!field_at(&event->schema, "common_preempt_count", &stacks->preempt))
		return -EBADMSG;
	format.type = event->type;
	stacks->long_size = long_size;
	*(is_kernel ? &stacks->kernel : &stacks->user) = format;
	return 0;
}

static bool key_of(const struct stacks *stacks, const uint8_t *data, uint32_t size, struct stacks_key *ret)
{
	if (stacks->pid + sizeof(uint32_t) > size || stacks->flags >= size || stacks->preempt >= size)
		return false;
	memcpy(&ret->pid, data + stacks->pid, sizeof(ret->pid));
	ret->flags = data[stacks->flags];
	ret->preempt = data[stacks->preempt];
	return true;
}

static bool same_key(const struct stacks_key *a, const struct stacks_key *b)
{
	return a->pid == b->pid && a->flags == b->flags && a->preempt == b->preempt;
}

static uint32_t number_at(const struct page_event *event, uint32_t offset)
{
	uint32_t value = 0;

	if (offset + sizeof(value) <= event->size)
		memcpy(&value, event->data + offset, sizeof(value));
	return value;
}

/* Returns how many there are. Rests of a fixed-size array are 0, or all ones where a kernel ends it so. */
static uint32_t take_frames(const struct stacks *stacks, const struct page_event *event, uint32_t from, uint32_t most, uint64_t *frames)
{
	uint32_t count = 0;

	for (uint32_t at = from; count < most && at + stacks->long_size <= event->size; at += stacks->long_size) {
		uint64_t frame = 0;
		uint32_t half;

		if (stacks->long_size == sizeof(frame)) {
			memcpy(&frame, event->data + at, sizeof(frame));
		} else {
			memcpy(&half, event->data + at, sizeof(half));
			frame = half == UINT32_MAX ? UINT64_MAX : half;
		}
		if (frame == 0 || frame == UINT64_MAX)
			break;
		frames[count++] = frame;
	}
	return count;
}

static void take_kernel(struct stacks *stacks, const struct page_event *event)
{
	uint32_t most = number_at(event, stacks->kernel.number);

	if (most == 0 || most > STACKS_KERNEL_MOST)
		most = STACKS_KERNEL_MOST;
	stacks->head.kernel_count = take_frames(stacks, event, stacks->kernel.caller, most, stacks->kernel_frames);
	stacks->head.found |= STACK_KERNEL;
}

static void take_user(struct stacks *stacks, const struct page_event *event)
{
	stacks->head.process = (int32_t)number_at(event, stacks->user.number);
	stacks->head.user_count = take_frames(stacks, event, stacks->user.caller, STACKS_USER_MOST, stacks->user_frames);
	stacks->head.found |= STACK_USER;
}

/* Whether the search is over with what follows. */
static bool look_at(struct stacks *stacks, const struct stacks_key *key, const struct page_event *next, bool preemptible)
{
	struct stacks_key other;
	uint16_t type;

	if (next->size < sizeof(type) || !key_of(stacks, next->data, next->size, &other))
		return false;
	if (!same_key(key, &other))
		return other.pid != key->pid && !preemptible;
	memcpy(&type, next->data, sizeof(type));
	if (type == stacks->kernel.type && !(stacks->head.found & STACK_KERNEL))
		take_kernel(stacks, next);
	else if (type == stacks->user.type && !(stacks->head.found & STACK_USER))
		take_user(stacks, next);
	else
		return true;
	return false;
}

/* A sweep may come between an event and its stack where the processor stands still. The last one finds everything. */
static bool is_quiet(const struct stacks *stacks, const struct merge_event *event)
{
	return merge_knows_after(stacks->merge, stacks->impatient ? event->time : UINT64_MAX - 1);
}

bool stacks_gather(struct stacks *stacks, const struct merge_event *event, uint8_t wanted, bool preemptible)
{
	struct merge_look look;
	struct page_event next;
	struct stacks_key key;

	memset(&stacks->head, 0, sizeof(stacks->head));
	if (!stacks->merge || !key_of(stacks, event->data, event->size, &key))
		return true;
	merge_look_begin(stacks->merge, &look);
	for (int i = 0; i < STACKS_LOOK_MOST; i++) {
		if ((stacks->head.found & wanted) == wanted)
			return true;
		if (!merge_look_next(stacks->merge, &look, &next))
			return is_quiet(stacks, event) || merge_slots(stacks->merge) >= stacks->slots_most;
		if (look_at(stacks, &key, &next, preemptible))
			return true;
	}
	return true;
}

/* ---- the record ---- */

uint32_t stacks_size(const struct stacks *stacks, uint8_t wanted)
{
	uint32_t frames = (wanted & STACK_KERNEL ? stacks->head.kernel_count : 0) + (wanted & STACK_USER ? stacks->head.user_count : 0);

	return (uint32_t)(sizeof(struct record_header) + sizeof(struct record_stack) + frames * sizeof(uint64_t));
}

void stacks_write(const struct stacks *stacks, uint8_t wanted, const struct record_header *event, struct record_header *ret)
{
	struct record_stack head = stacks->head;
	uint8_t *at = (uint8_t *)(ret + 1);

	head.found &= wanted;
	if (!(wanted & STACK_KERNEL))
		head.kernel_count = 0;
	if (!(wanted & STACK_USER))
		head.user_count = 0;
	*ret = *event;
	ret->kind = RECORD_STACK;
	ret->flags = 0;
	ret->size = stacks_size(stacks, wanted);
	ret->payload_size = ret->size - (uint32_t)sizeof(*ret);
	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	memcpy(at, stacks->kernel_frames, head.kernel_count * sizeof(uint64_t));
	memcpy(at + head.kernel_count * sizeof(uint64_t), stacks->user_frames, head.user_count * sizeof(uint64_t));
}
