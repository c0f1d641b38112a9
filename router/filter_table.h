/* A hash table of links that its users embed. Chained, so that once the table exists nothing that
 * is put in can fail: when there is no memory for more buckets the chains grow instead. */
#ifndef TRACEFAN_ROUTER_FILTER_TABLE_H
#define TRACEFAN_ROUTER_FILTER_TABLE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct table_link {
	struct table_link *next;
	uint64_t hash;
};

struct filter_table {
	struct table_link **buckets;
	size_t room, count; /* room: a power of two */
};

static inline int filter_table_create(struct filter_table *table)
{
	*table = (struct filter_table){ .room = 16 };
	table->buckets = calloc(table->room, sizeof(struct table_link *));
	return table->buckets ? 0 : -ENOMEM;
}

/* The first link of the hash's chain, for the user to walk; others are among them. */
static inline struct table_link *filter_table_chain(const struct filter_table *table, uint64_t hash)
{
	return table->buckets[hash & (table->room - 1)];
}

static inline void filter_table_grow(struct filter_table *table)
{
	size_t room = 2 * table->room;
	struct table_link **buckets = calloc(room, sizeof(struct table_link *));

	if (!buckets)
		return;
	for (size_t i = 0; i < table->room; i++) {
		while (table->buckets[i]) {
			struct table_link *link = table->buckets[i];

			table->buckets[i] = link->next;
			link->next = buckets[link->hash & (room - 1)];
			buckets[link->hash & (room - 1)] = link;
		}
	}
	free(table->buckets);
	table->buckets = buckets;
	table->room = room;
}

static inline void filter_table_add(
	struct filter_table *table, struct table_link *link, uint64_t hash)
{
	struct table_link **bucket;

	/* Most chains are to have one link: a second one is a second miss of the cache. */
	if (4 * table->count >= table->room)
		filter_table_grow(table);
	bucket = &table->buckets[hash & (table->room - 1)];
	link->hash = hash;
	link->next = *bucket;
	*bucket = link;
	table->count++;
}

static inline void filter_table_remove(struct filter_table *table, struct table_link *link)
{
	struct table_link **at = &table->buckets[link->hash & (table->room - 1)];

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	table->count--;
}

#define TABLE_ITEM(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

#endif
