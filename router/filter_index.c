/* The programs of many consumers, matched at once.
 *
 *   consumers with equal programs --> one group --> ways in: (field, value), looked up by hash
 *                                         '-------> or a list of groups, tried one after another
 *
 * A group whose program can only be true for some values of one field (one field per alternative)
 * is found by those values; what else its program asks is tried only then. Of a conjunction any
 * part may give the values: (pid == 1 || comm == x) && more is found by 1 and by x, and `more` is
 * asked then. The comparisons of all programs are kept once each, and remember what they said of
 * the event at hand. */
#include "router/filter_program.h"
#include "router/filter_shared.h"
#include "router/filter_ways.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct member {
	struct table_link link; /* index->members, by the user's address */
	void *user;
	struct group *group;
	size_t place; /* in group->members */
	uint64_t limited; /* the group's, when it came */
};

/* One alternative of a group's program. */
struct branch {
	struct filter_node *rest; /* NULL: nothing */
	struct filter_code code;
	struct filter_pred *key;
	struct ways_field *field;
	struct way_in *ways;
	size_t way_count;
};

/* The first three are all that most events touch of it, and fill a line of the cache. */
struct group {
	_Alignas(64) struct way_in first; /* the way in where there is just one, else unused */
	uint64_t found;                   /* the event that it was last found for */
	void *lone;                       /* the only member's user, NULL: there are more */
	struct table_link link;           /* index->groups, by the tree's hash */
	size_t member_count, member_room;
	struct member **members;
	struct filter_code code; /* no ways in: the whole program */
	struct filter_node *tree;
	struct branch *branches;
	size_t branch_count;
	struct way_in *ways;            /* all branches', or `first` */
	struct group *next, **previous; /* among index->tried, where it has no ways in */
};

/* What an index remembers of values: room for twice as many as are looked up, but no less than the first, and no more than the
 * other. */
#define MEMOS_LEAST 64
#define MEMOS_MOST  4096

/* What filter_index_find said of a value. */
struct memo {
	uint64_t value;
	void *user; /* NULL: nobody */
};

struct filter_index {
	struct filter_shared shared;
	struct filter_ways ways;
	struct filter_table groups, members;
	struct group *tried;
	const struct ways_field *only; /* all that is asked at first is this number of the payload; NULL: more */
	struct memo *memos; /* by a value's last bits; NULL only where `only` is */
	size_t memo_room;
	void **matched;
	size_t matched_room;
};

int filter_index_create(uint64_t seed, struct filter_index **ret)
{
	struct filter_index *index = calloc(1, sizeof(*index));

	if (!index)
		return -ENOMEM;
	index->ways.seed = seed;
	if (filter_shared_create(&index->shared) || filter_table_create(&index->groups) ||
		filter_table_create(&index->members)) {
		filter_index_release(index);
		return -ENOMEM;
	}
	*ret = index;
	return 0;
}

/* ---- ways in ---- */

/* The conjunction of `rest`, which may be NULL, and of all children but one. */
static int join_rest(const struct filter_node *node, size_t but, struct filter_node *rest,
	struct filter_node **ret)
{
	struct filter_nodes parts = { 0 };
	int error = rest ? filter_nodes_add(&parts, filter_node_ref(rest)) : 0;

	for (size_t i = 0; i < node->count && !error; i++)
		if (i != but)
			error = filter_nodes_add(&parts, filter_node_ref(node->children[i]));
	if (!error)
		return filter_node_join(true, &parts, ret);
	filter_nodes_release(&parts);
	return error;
}

/* An event that has one of the key's values is the group's if it passes `rest` (NULL: nothing). */
static int add_branch(struct filter_index *index, struct group *group, struct filter_pred *key,
	struct filter_node *rest)
{
	struct branch *branch = &group->branches[group->branch_count];
	int error = 0;

	branch->key = key;
	branch->field = filter_ways_field(&index->ways, key);
	if (!branch->field)
		return -ENOMEM;
	if (rest)
		error = filter_shared_code(&index->shared, rest, &branch->code);
	if (error)
		return error;
	branch->rest = rest ? filter_node_ref(rest) : NULL;
	group->branch_count++;
	return 0;
}

/* The branches of a tree that has a cover: no more than it has comparisons. */
static int add_branches(struct filter_index *index, struct group *group,
	const struct filter_node *node, struct filter_node *rest)
{
	struct filter_node *joined;
	size_t best = 0;
	int error = 0;

	if (node->kind == NODE_TEST)
		return add_branch(index, group, node->pred, rest);
	for (size_t i = 0; node->kind == NODE_OR && i < node->count && !error; i++)
		error = add_branches(index, group, node->children[i], rest);
	if (node->kind == NODE_OR)
		return error;
	(void)filter_ways_cover(&index->ways, node, &best);
	error = join_rest(node, best, rest, &joined);
	if (error)
		return error;
	error = add_branches(index, group, node->children[best], joined);
	filter_node_release(joined);
	return error;
}

static int make_ways(struct filter_index *index, struct group *group, size_t values)
{
	int error;

	group->branches = calloc(filter_node_count_tests(group->tree), sizeof(group->branches[0]));
	if (!group->branches)
		return -ENOMEM;
	error = add_branches(index, group, group->tree, NULL);
	if (error)
		return error;
	group->ways = values > 1 ? calloc(values, sizeof(group->ways[0])) : &group->first;
	if (!group->ways)
		return -ENOMEM;
	for (size_t i = 0, used = 0; i < group->branch_count; i++) {
		struct branch *branch = &group->branches[i];
		struct way_in model = {
			.group = group,
			.rest = branch->rest ? &branch->code : NULL,
		};

		branch->ways = group->ways + used;
		branch->way_count = filter_ways_add(
			&index->ways, branch->key, branch->field, model, branch->ways);
		used += branch->way_count;
	}
	return 0;
}

/* ---- groups ---- */

static void group_release(struct filter_index *index, struct group *group)
{
	for (size_t i = 0; i < group->branch_count; i++) {
		struct branch *branch = &group->branches[i];

		for (size_t j = 0; j < branch->way_count; j++)
			filter_ways_remove(branch->field, &branch->ways[j]);
		filter_shared_drop(&index->shared, &branch->code);
		filter_node_release(branch->rest);
	}
	if (group->previous) {
		*group->previous = group->next;
		if (group->next)
			group->next->previous = group->previous;
	}
	filter_shared_drop(&index->shared, &group->code);
	filter_node_release(group->tree);
	free(group->branches);
	if (group->ways != &group->first)
		free(group->ways);
	free(group->members);
	free(group);
}

static struct group *find_group(const struct filter_index *index, const struct filter_node *tree)
{
	for (struct table_link *link = filter_table_chain(&index->groups, tree->hash); link;
		link = link->next) {
		struct group *group = TABLE_ITEM(link, struct group, link);

		if (link->hash == tree->hash && filter_node_equal(group->tree, tree))
			return group;
	}
	return NULL;
}

static int group_create(struct filter_index *index, struct filter_node *tree, struct group **ret)
{
	struct group *group = aligned_alloc(_Alignof(struct group), sizeof(*group));
	size_t best, values = filter_ways_cover(&index->ways, tree, &best).values;
	int error;

	if (!group)
		return -ENOMEM;
	memset(group, 0, sizeof(*group));
	group->tree = filter_node_ref(tree);
	error = values && values <= FILTER_SET_MAX
			? make_ways(index, group, values)
			: filter_shared_code(&index->shared, tree, &group->code);
	if (error) {
		group_release(index, group);
		return error;
	}
	if (!group->branch_count) {
		group->next = index->tried;
		group->previous = &index->tried;
		if (group->next)
			group->next->previous = &group->next;
		index->tried = group;
	}
	filter_table_add(&index->groups, &group->link, tree->hash);
	*ret = group;
	return 0;
}

static void forget_empty(struct filter_index *index, struct group *group)
{
	if (group->member_count)
		return;
	filter_table_remove(&index->groups, &group->link);
	group_release(index, group);
}

/* ---- members ---- */

/* After groups have come or gone. Without memory there is nothing that filter_index_find knows. */
static void find_only(struct filter_index *index)
{
	const struct ways_field *only = NULL;
	size_t fields = 0, room = MEMOS_LEAST;

	for (const struct ways_field *field = index->ways.fields; field; field = field->next) {
		if (!field->values.count)
			continue;
		only = field;
		fields++;
	}
	index->only = fields == 1 && !index->tried && only->field.type == TYPE_NUMBER && only->field.direct ? only : NULL;
	if (!index->only)
		return;
	while (room < 2 * only->values.count && room < MEMOS_MOST)
		room *= 2;
	if (room != index->memo_room) {
		free(index->memos);
		index->memos = calloc(room, sizeof(*index->memos));
		index->memo_room = index->memos ? room : 0;
	}
	if (!index->memos) {
		index->only = NULL;
		return;
	}
	/* A value that belongs elsewhere is none. */
	for (size_t i = 0; i < index->memo_room; i++)
		index->memos[i] = (struct memo){ .value = i + 1 };
}

static uint64_t hash_user(const void *user)
{
	return filter_mix((uint64_t)(uintptr_t)user);
}

static struct member *find_member(const struct filter_index *index, const void *user)
{
	uint64_t hash = hash_user(user);

	for (struct table_link *link = filter_table_chain(&index->members, hash); link;
		link = link->next) {
		struct member *member = TABLE_ITEM(link, struct member, link);

		if (member->user == user)
			return member;
	}
	return NULL;
}

static int reserve_place(struct group *group)
{
	size_t room = group->member_room ? 2 * group->member_room : 1;
	struct member **moved;

	if (group->member_count < group->member_room)
		return 0;
	moved = realloc(group->members, room * sizeof(struct member *));
	if (!moved)
		return -ENOMEM;
	group->members = moved;
	group->member_room = room;
	return 0;
}

/* Room for every member's user in what filter_index_match returns. */
static int reserve_matched(struct filter_index *index, size_t count)
{
	size_t room = index->matched_room ? index->matched_room : 16;
	void **moved;

	while (room < count)
		room *= 2;
	if (room == index->matched_room)
		return 0;
	moved = realloc(index->matched, room * sizeof(void *));
	if (!moved)
		return -ENOMEM;
	index->matched = moved;
	index->matched_room = room;
	return 0;
}

static uint64_t group_limited(const struct group *group)
{
	uint64_t limited = group->code.limited;

	for (size_t i = 0; i < group->branch_count; i++)
		limited += group->branches[i].code.limited;
	return limited;
}

static void enter_group(struct group *group, struct member *member)
{
	member->group = group;
	member->place = group->member_count;
	member->limited = group_limited(group);
	group->members[group->member_count++] = member;
	group->lone = group->member_count == 1 ? member->user : NULL;
}

/* The last member takes the free place. */
static void leave_group(struct member *member)
{
	struct group *group = member->group;
	struct member *last = group->members[--group->member_count];

	group->members[member->place] = last;
	last->place = member->place;
	group->lone = group->member_count == 1 ? group->members[0]->user : NULL;
}

int filter_index_set(struct filter_index *index, void *user, const struct filter_program *program)
{
	struct group *group = find_group(index, program->tree), *old;
	struct member *known = find_member(index, user), *member = known;
	int error = 0;

	if (!group)
		error = group_create(index, program->tree, &group);
	if (error)
		return error;
	if (!member)
		member = calloc(1, sizeof(*member));
	if (!member || reserve_place(group) || reserve_matched(index, index->members.count + 1)) {
		if (member != known)
			free(member);
		forget_empty(index, group);
		return -ENOMEM;
	}
	/* From here on nothing fails. */
	if (known) {
		old = known->group;
		leave_group(known);
		enter_group(group, known);
		forget_empty(index, old);
	} else {
		member->user = user;
		enter_group(group, member);
		filter_table_add(&index->members, &member->link, hash_user(user));
	}
	find_only(index);
	return 0;
}

int filter_index_remove(struct filter_index *index, const void *user)
{
	struct member *member = find_member(index, user);
	struct group *group;

	if (!member)
		return -ENOENT;
	group = member->group;
	leave_group(member);
	filter_table_remove(&index->members, &member->link);
	free(member);
	forget_empty(index, group);
	find_only(index);
	return 0;
}

uint64_t filter_index_limited(const struct filter_index *index, const void *user)
{
	const struct member *member = find_member(index, user);

	return member ? group_limited(member->group) - member->limited : 0;
}

size_t filter_index_count(const struct filter_index *index)
{
	return index->members.count;
}

uint32_t filter_index_facts(const struct filter_index *index)
{
	uint32_t facts = filter_shared_facts(&index->shared);

	for (const struct ways_field *field = index->ways.fields; field; field = field->next)
		if (field->values.count)
			facts |= filter_field_fact(&field->field);
	return facts;
}

void filter_index_release(struct filter_index *index)
{
	if (!index)
		return;
	for (size_t i = 0; index->members.buckets && i < index->members.room; i++) {
		while (index->members.buckets[i]) {
			const struct member *member =
				TABLE_ITEM(index->members.buckets[i], struct member, link);

			(void)filter_index_remove(index, member->user);
		}
	}
	filter_ways_release(&index->ways);
	filter_shared_release(&index->shared);
	free(index->groups.buckets);
	free(index->members.buckets);
	free(index->matched);
	free(index->memos);
	free(index);
}

/* ---- matching ---- */

static size_t accept(struct filter_index *index, struct group *group, size_t count)
{
	group->found = index->shared.event;
	if (group->lone) {
		index->matched[count++] = group->lone;
		return count;
	}
	for (size_t i = 0; i < group->member_count; i++)
		index->matched[count++] = group->members[i]->user;
	return count;
}

static size_t match_ways(struct filter_index *index, struct ways_field *field,
	const struct filter_event *event, size_t count)
{
	const char *text = NULL;
	uint64_t value = 0, hash;
	size_t size;

	if (field->field.type == TYPE_NUMBER) {
		if (!filter_field_number(&field->field, event, &value))
			return count;
		value = filter_field_key(&field->field, value);
		hash = filter_ways_hash(&index->ways, value);
	} else {
		if (!filter_field_text(&field->field, event, &text, &size))
			return count;
		hash = filter_hash_text(index->ways.seed, text, size);
		value = size;
	}
	for (struct table_link *link = filter_table_chain(&field->values, hash); link;
		link = link->next) {
		const struct way_in *way = TABLE_ITEM(link, struct way_in, link);

		if (link->hash != hash || way->group->found == index->shared.event)
			continue;
		if (!filter_ways_equal(way, text, value))
			continue;
		if (!way->rest || filter_shared_run(&index->shared, way->rest, event))
			count = accept(index, way->group, count);
	}
	return count;
}

size_t filter_index_match(
	struct filter_index *index, const struct filter_event *event, void *const **ret_users)
{
	size_t count = 0;

	index->shared.event++;
	for (struct ways_field *field = index->ways.fields; field; field = field->next)
		if (field->values.count)
			count = match_ways(index, field, event, count);
	for (struct group *group = index->tried; group; group = group->next)
		if (filter_shared_run(&index->shared, &group->code, event))
			count = accept(index, group, count);
	*ret_users = index->matched;
	return count;
}

static __attribute__((noinline)) enum filter_found look_up(struct filter_index *index, uint64_t value, void **ret_user)
{
	const struct way_in *found = NULL;
	const uint64_t key = filter_field_key(&index->only->field, value);
	const uint64_t hash = filter_ways_hash(&index->ways, key);

	for (struct table_link *link = filter_table_chain(&index->only->values, hash); link; link = link->next) {
		const struct way_in *way = TABLE_ITEM(link, struct way_in, link);

		if (way->value != key)
			continue;
		if (found || way->rest || !way->group->lone)
			return FILTER_ASK;
		found = way;
	}
	*ret_user = found ? found->group->lone : NULL;
	index->memos[value & (index->memo_room - 1)] = (struct memo){ value, *ret_user };
	return found ? FILTER_ONE : FILTER_NOBODY;
}

enum filter_found filter_index_find(struct filter_index *index, const void *payload, size_t size, void **ret_user)
{
	const struct ways_field *only = index->only;
	const struct memo *memo;
	uint64_t value;

	if (!only)
		return FILTER_ASK;
	if ((uint64_t)only->field.offset + only->field.size > size)
		return FILTER_NOBODY;
	value = filter_load((const uint8_t *)payload + only->field.offset, only->field.size, only->field.is_signed);
	memo = &index->memos[value & (index->memo_room - 1)];
	if (memo->value != value)
		return look_up(index, value, ret_user);
	*ret_user = memo->user;
	return memo->user ? FILTER_ONE : FILTER_NOBODY;
}
