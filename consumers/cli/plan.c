#include "consumers/cli/plan.h"

#include <stdlib.h>
#include <string.h>

#define PLAN_SET_FIRST 16

static void plan_release(struct plan *plan)
{
	free(plan->head);
	free(plan->fields);
	*plan = (struct plan){ 0 };
}

void plan_set_release(struct plan_set *set)
{
	for (size_t i = 0; i < set->size; i++)
		plan_release(&set->plans[i]);
	free(set->plans);
	*set = (struct plan_set){ 0 };
}

/* The fields and, into `writer`, the texts; keys are kept as offsets until the texts have their final place. */
static int plan_fields(struct plan *plan, const struct plan_set *set, struct writer *writer, size_t *offsets)
{
	size_t count = tfan_field_count(plan->trace);

	for (size_t i = 0; i < count; i++) {
		struct plan_field *field = &plan->fields[plan->count];
		struct tfan_field from;

		if (tfan_field_at(plan->trace, i, &from) < 0 || from.is_common || strncmp(from.name, "__", 2) == 0)
			continue;
		*field = (struct plan_field){
			.index = i,
			.kind = from.kind,
			.display = from.display,
			.size = from.size,
			.is_signed = from.is_signed,
			.is_body = set->from_text && i == count - 1,
		};
		if (from.kind == TFAN_BYTES && from.size != 1 && from.size != 2 && from.size != 4 && from.size != 8) {
			field->is_opaque = true;
			field->is_signed = false;
			field->size = 1;
		}
		offsets[plan->count++] = writer->used;
		set->style->key(writer, from.name, set->decorated);
		field->key_size = writer->used - offsets[plan->count - 1];
	}
	return writer_error(writer);
}

static int plan_build(struct plan *plan, const struct plan_set *set, struct writer *writer, size_t *offsets)
{
	set->style->head(writer, plan->trace, set->decorated);
	plan->head_size = writer->used;
	if (plan_fields(plan, set, writer, offsets) < 0)
		return -1;
	plan->head = malloc(writer->used + 1);
	if (!plan->head)
		return -1;
	memcpy(plan->head, writer->buffer, writer->used);
	for (size_t i = 0; i < plan->count; i++)
		plan->fields[i].key = plan->head + offsets[i];
	return 0;
}

static int plan_init(struct plan *plan, const struct plan_set *set, const struct tfan_trace *trace)
{
	size_t count = tfan_field_count(trace);
	size_t *offsets = calloc(count + 1, sizeof(*offsets));
	struct writer writer;
	int r = -1;

	*plan = (struct plan){ .trace = trace, .fields = calloc(count + 1, sizeof(*plan->fields)) };
	if (offsets && plan->fields && writer_open_memory(&writer) == 0) {
		r = plan_build(plan, set, &writer, offsets);
		writer_close(&writer);
	}
	free(offsets);
	if (r < 0)
		plan_release(plan);
	return r;
}

/* The place of a trace in the table, or the free one where it belongs. */
static struct plan *plan_place(struct plan *plans, size_t size, const struct tfan_trace *trace)
{
	size_t at = (size_t)(((uintptr_t)trace >> 4) * 0x9e3779b97f4a7c15ULL >> 32);

	while (plans[at & (size - 1)].trace && plans[at & (size - 1)].trace != trace)
		at++;
	return &plans[at & (size - 1)];
}

static int plan_set_grow(struct plan_set *set)
{
	size_t size = set->size ? set->size * 2 : PLAN_SET_FIRST;
	struct plan *plans = calloc(size, sizeof(*plans));

	if (!plans)
		return -1;
	for (size_t i = 0; i < set->size; i++) {
		if (set->plans[i].trace)
			*plan_place(plans, size, set->plans[i].trace) = set->plans[i];
	}
	free(set->plans);
	set->plans = plans;
	set->size = size;
	set->last = NULL;
	return 0;
}

struct plan *plan_make(struct plan_set *set, const struct tfan_trace *trace)
{
	struct plan *place;

	if (2 * (set->used + 1) > set->size && plan_set_grow(set) < 0)
		return NULL;
	place = plan_place(set->plans, set->size, trace);
	if (!place->trace) {
		if (plan_init(place, set, trace) < 0)
			return NULL;
		set->used++;
	}
	set->last = place;
	return place;
}

const struct plan *plan_find(const struct plan_set *set, const struct tfan_trace *trace)
{
	const struct plan *place = set->size ? plan_place(set->plans, set->size, trace) : NULL;

	return place && place->trace ? place : NULL;
}
