#include "consumers/client/binding.h"

#include "consumers/client/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void binding_free(struct binding *binding)
{
	if (!binding)
		return;
	free(binding->filled);
	free(binding->members);
	free(binding->condition);
	free(binding);
}

static bool kinds_agree(enum tfan_member_kind member, enum tfan_type field)
{
	if (shape_is_integer(member))
		return field == TFAN_INTEGER;
	return field == TFAN_STRING || field == TFAN_BYTES;
}

static int find_field(struct tfan_trace *trace, const struct shape_member *member, const char *name,
	enum tfan_member_kind kind, unsigned int *ret)
{
	struct failure *failure = &trace->tfan->failure;
	struct tfan_field field;
	int i = tfan_field_find(trace, name);

	if (i < 0)
		return failure_set(failure, TFAN_FETCH_ARG, ENOENT, -1,
			"the table's member %s: the event has no field \"%s\"", member->name, name);
	(void)tfan_field_at(trace, (size_t)i, &field);
	if (!kinds_agree(kind, field.kind))
		return failure_set(failure, TFAN_FETCH_ARG, EINVAL, -1,
			"the table's member %s: the event's field \"%s\" is %s", member->name, name, field.type);
	*ret = (unsigned int)i;
	return 0;
}

static int bind_member(struct tfan_trace *trace, const struct shape_member *from, struct binding_member *ret)
{
	int rc = find_field(trace, from, from->field, from->kind, &ret->field);

	if (rc == 0 && from->address_field[0])
		rc = find_field(trace, from, from->address_field, TFAN_MEMBER_UNSIGNED, &ret->address_field);
	ret->offset = from->offset;
	ret->size = (uint8_t)from->size;
	ret->kind = (uint8_t)from->kind;
	ret->is_big_endian = from->is_big_endian;
	/* Of a string that the event itself has, nobody knows the address: it stays 0. */
	if (from->kind == TFAN_MEMBER_STRING_ADDRESS && !from->address_field[0])
		ret->kind = TFAN_MEMBER_STRING;
	return rc;
}

int binding_make(struct tfan_trace *trace, const struct shape_plan *plan, tfan_handler handler, void *context)
{
	struct binding *binding = calloc(1, sizeof(*binding));
	int rc = 0;

	if (binding) {
		binding->filled = calloc(1, plan->size);
		binding->members = calloc(plan->member_count + 1, sizeof(*binding->members));
		binding->condition = strdup(plan->condition);
	}
	if (!binding || !binding->filled || !binding->members || !binding->condition) {
		binding_free(binding);
		return failure_set(&trace->tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	}
	binding->handler = handler;
	binding->context = context;
	binding->member_count = plan->member_count;
	for (size_t i = 0; rc == 0 && i < plan->member_count; i++) {
		rc = bind_member(trace, &plan->members[i], &binding->members[i]);
		binding->string_count += !shape_is_integer(plan->members[i].kind);
	}
	if (rc) {
		binding_free(binding);
		return rc;
	}
	trace->binding = binding;
	return 0;
}

static void store_integer(const struct binding_member *member, void *at, uint64_t value)
{
	bool swap = member->is_big_endian;

	switch (member->size) {
	case 1:
		*(uint8_t *)at = member->kind == TFAN_MEMBER_BOOL ? value != 0 : (uint8_t)value;
		break;
	case 2:
		memcpy(at, &(uint16_t){ swap ? __builtin_bswap16((uint16_t)value) : (uint16_t)value }, 2);
		break;
	case 4:
		memcpy(at, &(uint32_t){ swap ? __builtin_bswap32((uint32_t)value) : (uint32_t)value }, 4);
		break;
	default:
		memcpy(at, &(uint64_t){ swap ? __builtin_bswap64(value) : value }, 8);
		break;
	}
}

/* Room for all strings of an event, so that none moves while the others are copied: each lies inside the
 * payload, and they may overlap there. */
static int make_room(struct binding_strings *strings, const struct tfan_event *event, size_t count)
{
	size_t need = count * ((size_t)event->payload_size + 1);
	char *more;

	strings->used = 0;
	if (need <= strings->room)
		return 0;
	more = realloc(strings->bytes, need);
	if (!more)
		return -ENOMEM;
	strings->bytes = more;
	strings->room = need;
	return 0;
}

static int fill_string(const struct binding_member *member, const struct tfan_event *event, void *at,
	struct binding_strings *strings)
{
	struct tfan_string_address whole = { 0 };
	char *copy = strings->bytes + strings->used;
	const void *bytes;
	size_t size;
	int rc = tfan_event_bytes(event, member->field, &bytes, &size);

	/* Where it lay is known even where it could not be read. */
	if (rc == -ENODATA && member->kind == TFAN_MEMBER_STRING_ADDRESS &&
		tfan_event_u64(event, member->address_field, &whole.address) == 0) {
		memcpy(at, &whole, sizeof(whole));
		return 0;
	}
	if (rc)
		return rc;
	memcpy(copy, bytes, size);
	copy[size] = '\0';
	strings->used += size + 1;
	if (member->kind == TFAN_MEMBER_STRING) {
		memcpy(at, &copy, sizeof(copy));
		return 0;
	}
	whole.string = copy;
	rc = tfan_event_u64(event, member->address_field, &whole.address);
	memcpy(at, &whole, sizeof(whole));
	return rc;
}

static size_t size_of(const struct binding_member *member)
{
	switch (member->kind) {
	case TFAN_MEMBER_STRING:
		return sizeof(const char *);
	case TFAN_MEMBER_STRING_ADDRESS:
		return sizeof(struct tfan_string_address);
	default:
		return member->size;
	}
}

static int fill_member(const struct binding_member *member, const struct tfan_event *event, void *at,
	struct binding_strings *strings)
{
	uint64_t value;
	int rc;

	if (!shape_is_integer((enum tfan_member_kind)member->kind))
		return fill_string(member, event, at, strings);
	rc = event_integer(event, &event->part->fields[member->field], &value);
	if (rc == 0)
		store_integer(member, at, value);
	return rc;
}

int binding_fill(struct binding *binding, const struct tfan_event *event, struct binding_strings *strings)
{
	const struct binding_member *member = binding->members, *end = member + binding->member_count;
	int rc = binding->string_count ? make_room(strings, event, binding->string_count) : 0;

	if (rc)
		return rc;
	for (; member < end; member++) {
		uint8_t *at = (uint8_t *)binding->filled + member->offset;

		rc = fill_member(member, event, at, strings);
		if (__builtin_expect(rc == 0, 1))
			continue;
		if (rc != -ENODATA)
			return rc;
		/* The line of a text source did not have it. */
		memset(at, 0, size_of(member));
	}
	return 0;
}
