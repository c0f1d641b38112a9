#include "consumers/client/shape.h"

#include "base/checked.h"
#include "shm/control.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPRESSIONS_MAX 9
#define GROUPS_MAX      8 /* how deep groups lie in groups; also ends a group that holds itself */

/* A text that grows; `failed` once there was no memory. */
struct text {
	char *at;
	size_t size;
	bool failed;
};

/* The groups around the member at hand. */
struct level {
	char prefix[PROBE_SPEC_ARG_NAME_MAX]; /* "" at the top */
	char *expressions[EXPRESSIONS_MAX];   /* of {1} to {9}; owned */
	size_t offset, end;                   /* of the structure at hand in the whole one */
	unsigned int depth;
};

struct maker {
	struct shape_plan *plan;
	struct text arguments, condition;
	size_t member_size;
	struct failure *failure;
};

static void text_add(struct text *text, const char *bytes, size_t size)
{
	char *more = text->failed ? NULL : realloc(text->at, text->size + size + 1);

	if (!more) {
		text->failed = true;
		return;
	}
	memcpy(more + text->size, bytes, size);
	text->at = more;
	text->size += size;
	text->at[text->size] = '\0';
}

static void text_add_all(struct text *text, const char *bytes)
{
	text_add(text, bytes, strlen(bytes));
}

static int no_memory(struct maker *m)
{
	return failure_set(m->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
}

#define wrong(m, ...) failure_set((m)->failure, TFAN_FETCH_ARG, EINVAL, -1, "the table's member " __VA_ARGS__)

/* Replaces {0} to {9} by what the group around the member says. *ret is the caller's to free. */
static int expand(struct maker *m, const struct level *level, const char *name, const char *from, char **ret)
{
	struct text text = { 0 };

	text_add(&text, "", 0);
	for (; *from; from++) {
		const char *with;

		if (from[0] != '{' || from[1] < '0' || from[1] > '9' || from[2] != '}') {
			text_add(&text, from, 1);
			continue;
		}
		with = from[1] == '0' ? level->prefix : level->expressions[from[1] - '1'];
		if (!with) {
			free(text.at);
			return wrong(m, "%s names {%c}, which its group does not give", name, from[1]);
		}
		text_add_all(&text, with);
		from += 2;
	}
	if (text.failed) {
		free(text.at);
		return no_memory(m);
	}
	*ret = text.at;
	return 0;
}

static int add_condition(struct maker *m, const struct level *level, const char *name, const char *condition)
{
	char *text;
	int rc;

	if (!condition || !*condition)
		return 0;
	rc = expand(m, level, name, condition, &text);
	if (rc)
		return rc;
	text_add_all(&m->condition, m->condition.size ? " && (" : "(");
	text_add_all(&m->condition, text);
	text_add_all(&m->condition, ")");
	free(text);
	return m->condition.failed ? no_memory(m) : 0;
}

static int add_argument(struct maker *m, const char *name, const char *before, const char *fetch, const char *after,
	const char *type)
{
	if (m->arguments.size)
		text_add_all(&m->arguments, " ");
	text_add_all(&m->arguments, name);
	text_add_all(&m->arguments, "=");
	text_add_all(&m->arguments, before);
	text_add_all(&m->arguments, fetch);
	text_add_all(&m->arguments, after);
	text_add_all(&m->arguments, ":");
	text_add_all(&m->arguments, type);
	return m->arguments.failed ? no_memory(m) : 0;
}

/* The bits of the integer that is fetched: the member's own, or for a truth value as many as its bits need. */
static unsigned int container_bits(const struct tfan_member *from)
{
	unsigned int bits = 8;

	if (from->kind != TFAN_MEMBER_BOOL)
		return (unsigned int)from->size * 8;
	while (bits < 64 && bits < (unsigned int)from->bits_from + from->bits_width)
		bits *= 2;
	return bits;
}

static bool integer_size(size_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

static int add_integer(struct maker *m, const struct tfan_member *from, const struct shape_member *member,
	const char *fetch)
{
	unsigned int width = container_bits(from);
	char type[32];

	if (from->bits_width == 0)
		(void)snprintf(type, sizeof(type), "%c%u", member->kind == TFAN_MEMBER_SIGNED ? 's' : 'u', width);
	else
		(void)snprintf(type, sizeof(type), "b%u@%u/%u", from->bits_width, from->bits_from, width);
	return add_argument(m, member->name, "", fetch, "", type);
}

static int add_string(struct maker *m, const struct tfan_member *from, struct shape_member *member, const char *fetch)
{
	int rc;

	if (member->kind == TFAN_MEMBER_STRING_ADDRESS) {
		static const char suffix[] = "_address";
		size_t size = strlen(member->name);

		if (size + sizeof(suffix) > sizeof(member->address_field))
			return wrong(m, "%s_address is longer than the %zu bytes that an argument's name has",
				member->name, sizeof(member->name) - 1);
		memcpy(member->address_field, member->name, size);
		memcpy(member->address_field + size, suffix, sizeof(suffix));
		rc = add_argument(m, member->address_field, "", fetch, "", "u64");
		if (rc)
			return rc;
	}
	return add_argument(m, member->name, from->user_memory ? "+u0(" : "+0(", fetch, ")", "string");
}

/* What the table says of the member must go together, whoever filled it in. */
static int check_member(struct maker *m, const struct tfan_member *from, const struct level *level, const char *name)
{
	bool is_integer = shape_is_integer(from->kind);
	size_t size = from->size;

	if (from->kind < TFAN_MEMBER_UNSIGNED || from->kind > TFAN_MEMBER_BOOL)
		return wrong(m, "%s has no kind: begin it with TFAN_MEMBER or TFAN_GROUP", name);
	if (is_integer ? !integer_size(size) :
			 (from->kind == TFAN_MEMBER_STRING && size != sizeof(const char *)) ||
				 (from->kind == TFAN_MEMBER_STRING_ADDRESS && size != sizeof(struct tfan_string_address)))
		return wrong(m, "%s has %zu bytes, which is no size of its kind", name, size);
	if (!range_inside(from->offset, size, level->end - level->offset))
		return wrong(m, "%s lies outside its structure", name);
	if ((from->bits_width || from->is_big_endian) && (!is_integer || (from->bits_width && from->is_big_endian)))
		return wrong(m, "%s: bits and byte order are for integers, and one or the other", name);
	if (from->bits_width && (!from->fetch || from->bits_from + from->bits_width > (int)container_bits(from)))
		return wrong(m, "%s: the bits are not inside what is fetched", name);
	return 0;
}

static int add_leaf(struct maker *m, const struct tfan_member *from, const struct level *level, const char *name)
{
	struct shape_member *member = &m->plan->members[m->plan->member_count];
	char *fetch;
	int rc;

	if (m->plan->member_count == SHAPE_MEMBERS_MAX)
		return wrong(m, "%s is one too many: at most %d", name, SHAPE_MEMBERS_MAX);
	memset(member, 0, sizeof(*member));
	(void)snprintf(member->name, sizeof(member->name), "%s", name);
	member->offset = level->offset + from->offset;
	member->size = from->size;
	member->kind = from->kind;
	member->is_big_endian = from->is_big_endian;
	if (control_text(member->field, sizeof(member->field), from->field && !from->fetch ? from->field : name) < 0)
		return wrong(m, "%s: the field's name is too long", name);
	m->plan->member_count++;
	rc = add_condition(m, level, name, from->condition);
	if (rc || !from->fetch)
		return rc;
	rc = expand(m, level, name, from->fetch, &fetch);
	if (rc)
		return rc;
	if (shape_is_integer(from->kind))
		rc = add_integer(m, from, member, fetch);
	else
		rc = add_string(m, from, member, fetch);
	free(fetch);
	return rc;
}

static int add_table(struct maker *m, const struct tfan_member *table, size_t count, const struct level *level);

/* Cuts a group's own fetch text into its expressions. */
static int split_expressions(struct maker *m, const struct level *outer, const char *name, const char *fetch,
	struct level *level)
{
	char *text, *at;
	size_t i = 0;
	int rc = expand(m, outer, name, fetch, &text);

	if (rc)
		return rc;
	for (at = text; at && i < EXPRESSIONS_MAX; i++) {
		char *one = strsep(&at, ",");

		level->expressions[i] = strdup(one);
		if (!level->expressions[i])
			at = NULL;
	}
	free(text);
	if (i > 0 && !level->expressions[i - 1])
		return no_memory(m);
	return at ? wrong(m, "%s gives more than %d expressions", name, EXPRESSIONS_MAX) : 0;
}

static int add_group(struct maker *m, const struct tfan_member *from, const struct level *outer, const char *name)
{
	struct level level = {
		.offset = outer->offset + from->offset,
		.end = outer->offset + from->offset + from->size,
		.depth = outer->depth + 1,
	};
	int rc = 0;

	if (level.depth > GROUPS_MAX)
		return wrong(m, "%s lies in more than %d groups", name, GROUPS_MAX);
	(void)snprintf(level.prefix, sizeof(level.prefix), "%s", name);
	if (from->fetch)
		rc = split_expressions(m, outer, name, from->fetch, &level);
	if (rc == 0)
		rc = add_condition(m, &level, name, from->condition);
	if (rc == 0)
		rc = add_table(m, from->group, from->group_count, &level);
	for (size_t i = 0; i < EXPRESSIONS_MAX; i++)
		free(level.expressions[i]);
	return rc;
}

static int add_member(struct maker *m, const struct tfan_member *from, const struct level *level)
{
	char name[PROBE_SPEC_ARG_NAME_MAX];
	int n, rc;

	if (!from->name || !*from->name)
		return wrong(m, "without a name: begin each with TFAN_MEMBER or TFAN_GROUP");
	n = snprintf(name, sizeof(name), "%s%s%s", level->prefix, level->prefix[0] ? "_" : "", from->name);
	if (n < 0 || (size_t)n >= sizeof(name))
		return wrong(m, "%s%s%s is longer than the %zu bytes that an argument's name has", level->prefix,
			level->prefix[0] ? "_" : "", from->name, sizeof(name) - 1);
	rc = check_member(m, from, level, name);
	if (rc)
		return rc;
	return from->kind == TFAN_MEMBER_GROUP ? add_group(m, from, level, name) : add_leaf(m, from, level, name);
}

/* The caller may be built with a shorter or longer struct tfan_member: rows are found by its own size. */
static int add_table(struct maker *m, const struct tfan_member *table, size_t count, const struct level *level)
{
	const uint8_t *at = (const uint8_t *)table;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < count; i++) {
		struct tfan_member member = { 0 };
		size_t size = m->member_size < sizeof(member) ? m->member_size : sizeof(member);

		memcpy(&member, at + i * m->member_size, size);
		rc = add_member(m, &member, level);
	}
	return rc;
}

static int make(struct maker *m, const struct tfan_shape *shape)
{
	struct level top = { .end = shape->size };
	int rc = add_table(m, shape->members, shape->member_count, &top);

	if (rc == 0)
		rc = add_condition(m, &top, "condition", shape->condition);
	text_add(&m->arguments, "", 0);
	text_add(&m->condition, "", 0);
	if (rc == 0 && (m->arguments.failed || m->condition.failed))
		rc = no_memory(m);
	m->plan->arguments = m->arguments.at;
	m->plan->condition = m->condition.at;
	return rc;
}

int shape_plan_make(const struct tfan_shape *shape, struct shape_plan **ret, struct failure *failure)
{
	struct maker m = { .plan = calloc(1, sizeof(*m.plan)), .failure = failure };
	int rc;

	if (!m.plan)
		return no_memory(&m);
	m.member_size = shape->member_size;
	m.plan->size = shape->size;
	if (shape->member_size < offsetof(struct tfan_member, fetch) || shape->size == 0 || shape->size > SHAPE_SIZE_MAX)
		rc = failure_set(failure, TFAN_FETCH_ARG, EINVAL, -1, "make the shape with TFAN_SHAPE");
	else
		rc = make(&m, shape);
	if (rc) {
		shape_plan_free(m.plan);
		return rc;
	}
	*ret = m.plan;
	return 0;
}

void shape_plan_free(struct shape_plan *plan)
{
	if (!plan)
		return;
	free(plan->arguments);
	free(plan->condition);
	free(plan);
}

char *shape_join_conditions(const char *a, const char *b, size_t *ret_shift)
{
	bool both = *a && *b;
	char *text;

	if (asprintf(&text, "%s%s%s%s%s", both ? "(" : "", a, both ? ") && (" : "", b, both ? ")" : "") < 0)
		return NULL;
	if (ret_shift)
		*ret_shift = both ? strlen(a) + strlen("() && (") : strlen(a);
	return text;
}
