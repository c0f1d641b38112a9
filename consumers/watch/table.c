#include "consumers/watch/table.h"

#include <errno.h>
#include <stdlib.h>

int table_init(struct table *table, size_t most, void (*release)(struct table_entry *entry))
{
	size_t size = 16;

	while (size < most)
		size *= 2;
	*table = (struct table){ .size = size, .most = most, .release = release };
	table->buckets = calloc(size, sizeof(struct table_entry *));
	return table->buckets ? 0 : -ENOMEM;
}

void table_free(struct table *table)
{
	if (table->buckets)
		table_clear(table);
	free(table->buckets);
	*table = (struct table){ 0 };
}

static struct table_entry **table_bucket(const struct table *table, uint64_t key)
{
	return &table->buckets[(key * 0x9e3779b97f4a7c15ULL >> 32) & (table->size - 1)];
}

struct table_entry *table_find(const struct table *table, uint64_t key)
{
	struct table_entry *entry = *table_bucket(table, key);

	while (entry && entry->key != key)
		entry = entry->next;
	return entry;
}

static void table_unlink(struct table *table, struct table_entry *entry)
{
	struct table_entry **at = table_bucket(table, entry->key);

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	*(entry->older ? &entry->older->newer : &table->oldest) = entry->newer;
	*(entry->newer ? &entry->newer->older : &table->newest) = entry->older;
	table->count--;
}

static void table_drop(struct table *table, struct table_entry *entry)
{
	if (!entry)
		return;
	table_unlink(table, entry);
	table->release(entry);
}

void table_put(struct table *table, uint64_t key, struct table_entry *entry)
{
	struct table_entry **bucket = table_bucket(table, key);

	table_drop(table, table_find(table, key));
	if (table->count == table->most)
		table_drop(table, table->oldest);
	*entry = (struct table_entry){ .next = *bucket, .older = table->newest, .key = key };
	*bucket = entry;
	*(table->newest ? &table->newest->newer : &table->oldest) = entry;
	table->newest = entry;
	table->count++;
}

void table_remove(struct table *table, uint64_t key)
{
	table_drop(table, table_find(table, key));
}

void table_clear(struct table *table)
{
	while (table->oldest)
		table_drop(table, table->oldest);
}
