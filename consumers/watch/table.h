/* A bounded table by a number, that forgets what was put in first: what an observer keeps of half-told things may be
 * made to grow by anybody who calls often enough. */
#ifndef TRACEFAN_WATCH_TABLE_H
#define TRACEFAN_WATCH_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* The first member of what is kept. */
struct table_entry {
	struct table_entry *next; /* of its bucket */
	struct table_entry *older, *newer;
	uint64_t key;
};

struct table {
	struct table_entry **buckets; /* a power of two, at least `most` */
	size_t size, count, most;
	struct table_entry *oldest, *newest;
	void (*release)(struct table_entry *entry);
};

/* Returns 0 or -ENOMEM. */
int table_init(struct table *table, size_t most, void (*release)(struct table_entry *entry));
void table_free(struct table *table);

struct table_entry *table_find(const struct table *table, uint64_t key);
/* Takes the entry; one of the same key is released, and the oldest where there is no more room. */
void table_put(struct table *table, uint64_t key, struct table_entry *entry);
/* Released, if there. */
void table_remove(struct table *table, uint64_t key);
/* All of them. */
void table_clear(struct table *table);

#endif
