/* Says in which order the code of shm touches what another process sees: a line for each piece of a protocol, as
 * "MODEL NAME: STORE DATA, STORE PUBLISHED". steps.py compares it with the models.
 *
 * Atomic accesses note themselves (steps.h); what was stored otherwise since the last one is found by comparing memory, and
 * told in the order of the cells: its own order means nothing to the other process.
 * As in the models, no process's loads of what it alone stores are noted, and neither is the same access twice in a row. */
#include "tests/shm/model/steps.h"

#include "base/checked.h"
#include "tests/shm/pool_pair.h"
#include "tests/shm/ring_pair.h"

#include <stdio.h>
#include <stdlib.h>

#define CAPACITY ((size_t)RING_CAPACITY_MIN)
#define RECORD   64
#define CELLS    16

enum side { WRITER, READER, BOTH };

/* A piece of shared memory, as the two sides have it mapped. */
struct cell {
	const char *name;
	enum side owner; /* who stores it */
	const uint8_t *views[2];
	size_t size;
	size_t span; /* of a view; more than `size` where it is mapped again behind itself */
	uint8_t *copy;
	bool clears; /* 0 says that it does not hold: CLEAR, not STORE */
};

static struct {
	struct cell cells[CELLS];
	size_t count;
	bool noting;
	enum side side;
	const struct cell *stored; /* by the access that was noted last */
	char text[1024], last[64];
	const struct cell *spoil_at; /* noted: the peer stores to `spoil` */
	void *spoil;
	size_t spoil_size;
} steps;

/* ---- what is noted ---- */

static void add(const char *what, const char *name)
{
	char word[sizeof(steps.last)];
	size_t used = strlen(steps.text);

	(void)snprintf(word, sizeof(word), "%s%s%s", what, *name ? " " : "", name);
	if (strcmp(word, steps.last) == 0)
		return;
	(void)snprintf(steps.last, sizeof(steps.last), "%s", word);
	(void)snprintf(steps.text + used, sizeof(steps.text) - used, "%s%s", used ? ", " : "", word);
}

static const struct cell *cell_at(const volatile void *at)
{
	const uintptr_t address = (uintptr_t)at;

	for (size_t i = 0; i < steps.count; i++) {
		const struct cell *cell = &steps.cells[i];

		for (int v = 0; v < 2; v++) {
			if (address - (uintptr_t)cell->views[v] < cell->span)
				return cell;
		}
	}
	return NULL;
}

/* What was stored without a note. */
static void add_plain(void)
{
	for (size_t i = 0; i < steps.count; i++) {
		struct cell *cell = &steps.cells[i];

		if (memcmp(cell->copy, cell->views[0], cell->size) == 0)
			continue;
		if (cell != steps.stored)
			add("STORE", cell->name);
		memcpy(cell->copy, cell->views[0], cell->size);
	}
	steps.stored = NULL;
}

/* What the peer stores is not this side's. */
static void spoil(void)
{
	struct cell *cell = &steps.cells[cell_at(steps.spoil) - steps.cells];

	memset(steps.spoil, 0xff, steps.spoil_size);
	memcpy(cell->copy, cell->views[0], cell->size);
}

void steps_note(const char *what, const volatile void *at)
{
	const struct cell *cell = at ? cell_at(at) : NULL;

	if (!steps.noting)
		return;
	add_plain();
	if (!at) {
		add(what, "");
		return;
	}
	if (!cell || (strcmp(what, "LOAD") == 0 && cell->owner == steps.side))
		return;
	if (!cell->clears)
		add(what, cell->name);
	steps.stored = strcmp(what, "LOAD") == 0 ? NULL : cell;
	if (cell == steps.spoil_at)
		spoil();
}

void steps_stored(void)
{
	const struct cell *cell = steps.stored;

	if (steps.noting && cell && cell->clears)
		add(*(const uint64_t *)(const void *)cell->views[0] ? "STORE" : "CLEAR", cell->name);
}

static void cell(const char *name, enum side owner, const void *writers, const void *readers, size_t size, size_t span)
{
	struct cell *new = &steps.cells[steps.count++];

	assert_true(steps.count <= CELLS);
	*new = (struct cell){ .name = name, .owner = owner, .views = { writers, readers }, .size = size, .span = span };
	new->copy = malloc(size);
	assert_non_null(new->copy);
}

/* From here on, of what this side does. */
static void begin(enum side side)
{
	for (size_t i = 0; i < steps.count; i++)
		memcpy(steps.cells[i].copy, steps.cells[i].views[0], steps.cells[i].size);
	steps.side = side;
	steps.text[0] = steps.last[0] = '\0';
	steps.stored = NULL;
	steps.noting = true;
}

static void end(const char *model, const char *name)
{
	add_plain();
	steps.noting = false;
	print_message("%s %s: %s\n", model, name, steps.text);
}

static void forget(void)
{
	while (steps.count)
		free(steps.cells[--steps.count].copy);
}

/* ---- rings ---- */

/* Of one field, in both mappings of its segment. */
#define RING_CELL(pair, name, owner, field)                                                                                   \
	cell(name, owner, &(pair)->head->field, &((struct ring_head *)(pair)->reader.head.base)->field, sizeof((pair)->head->field), \
		sizeof((pair)->head->field))
#define CURSOR_CELL(pair, name, owner, field)                                                                       \
	cell(name, owner, &((struct ring_cursor *)(pair)->writer.cursor.base)->field, &(pair)->cursor->field,          \
		sizeof((pair)->cursor->field), sizeof((pair)->cursor->field))

static void open_ring(struct ring_pair *pair, enum ring_overflow overflow)
{
	ring_pair_open(pair, CAPACITY, overflow, 0);
	RING_CELL(pair, "PUBLISHED", WRITER, published);
	cell("DATA", WRITER, pair->writer.data, pair->reader.data, CAPACITY, 2 * CAPACITY);
	if (overflow == RING_DROP) {
		RING_CELL(pair, "ORDER", WRITER, order);
		CURSOR_CELL(pair, "CONSUMED", READER, consumed);
		CURSOR_CELL(pair, "SLEEPS", READER, sleeps);
		return;
	}
	RING_CELL(pair, "TURN", WRITER, turn);
	for (int i = 0; i < 2; i++) {
		RING_CELL(pair, "POSITION", WRITER, resume[i].position);
		RING_CELL(pair, "EVENTS", WRITER, resume[i].events);
	}
	CURSOR_CELL(pair, "CURSOR", BOTH, consumed);
}

static void close_ring(struct ring_pair *pair)
{
	forget();
	ring_pair_close(pair);
}

static void a_ring_that_drops(void **state)
{
	const struct record_header *record;
	struct ring_pair pair;

	(void)state;
	open_ring(&pair, RING_DROP);
	begin(WRITER);
	assert_true(ring_pair_write(&pair, 0, RECORD));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	end("ring.pml", "write");

	begin(READER);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 1);
	end("ring.pml", "read");

	begin(READER);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 0);
	assert_true(ring_reader_prepare_sleep(&pair.reader));
	end("ring.pml", "sleep");
	close_ring(&pair);
}

static void a_ring_that_overwrites(void **state)
{
	const struct record_header *record;
	struct ring_pair pair;
	uint64_t n = 0;

	(void)state;
	open_ring(&pair, RING_OVERWRITE);
	for (; n < CAPACITY / RECORD; n++)
		assert_true(ring_pair_write(&pair, n, RECORD));
	assert_int_equal(ring_writer_publish(&pair.writer), 0);
	assert_int_equal(ring_reader_next(&pair.reader, &record), 1);

	begin(WRITER);
	assert_true(ring_pair_write(&pair, n++, RECORD));
	ring_writer_show(&pair.writer);
	end("overwrite.pml", "write");

	/* Over what is to be read next. */
	for (; n < 2 * CAPACITY / RECORD; n++)
		assert_true(ring_pair_write(&pair, n, RECORD));
	ring_writer_show(&pair.writer);
	begin(READER);
	assert_int_equal(ring_reader_next(&pair.reader, &record), -EOVERFLOW);
	end("overwrite.pml", "read");
	close_ring(&pair);
}

static void a_debt(void **state)
{
	const struct ring_debt debt = { .lost = { { .at_least = 1 } }, .cpu = 1, .same = 1, .reader_total = 1 };
	struct ring_pair pair;

	(void)state;
	ring_pair_open(&pair, CAPACITY, RING_DROP, 0);
	RING_CELL(&pair, "PUBLISHED", WRITER, published);
	for (int i = 0; i < 2; i++) {
		RING_CELL(&pair, "SERIAL", WRITER, debts[i].serial);
		steps.cells[steps.count - 1].clears = true;
		RING_CELL(&pair, "OWED", WRITER, debts[i].lost);
		RING_CELL(&pair, "LAST", WRITER, debts[i].cpu);
		RING_CELL(&pair, "AT", WRITER, debts[i].published);
	}
	assert_true(ring_pair_write(&pair, 0, RECORD));
	begin(WRITER);
	ring_writer_owe(&pair.writer, &debt);
	ring_writer_show(&pair.writer);
	end("debt.pml", "owe");
	close_ring(&pair);
}

/* ---- the pool ---- */

#define POOL_CELL(pair, name, owner, field)                                                                           \
	cell(name, owner, &((struct pool_head *)(pair)->writer.pool.base)->field,                                        \
		&((struct pool_head *)(pair)->reader.pool.base)->field, sizeof(uint64_t), sizeof(uint64_t))
#define FREE_CELL(pair, name, owner, field)                                                                           \
	cell(name, owner, &((struct free_head *)(pair)->writer.free.base)->field, &(pair)->free_head->field,             \
		sizeof((pair)->free_head->field), sizeof((pair)->free_head->field))

/* Of the pool the reader is the writer, and the router the reader. */
static void open_pool(struct pool_pair *pair)
{
	const size_t entries = sizeof(struct pool_entry) * 8, slots = 2 * (size_t)POOL_SLOT_SIZE_MIN, freed = 2 * sizeof(uint32_t);

	pool_pair_open(pair, 2, 0);
	assert_int_equal(pair->writer.filled_capacity, 8);
	POOL_CELL(pair, "FILLED", WRITER, filled);
	POOL_CELL(pair, "READER_SLEEPS", WRITER, reader_sleeps);
	FREE_CELL(pair, "TAKEN", READER, taken);
	FREE_CELL(pair, "FREED", READER, freed);
	FREE_CELL(pair, "ROUTER_SLEEPS", READER, router_sleeps);
	FREE_CELL(pair, "COUNTERS", READER, counters);
	cell("SLOT", WRITER, pair->writer.data, pair->reader.slots, slots, slots);
	cell("ENTRY", WRITER, pair->writer.entries, pair->reader.filled, entries, entries);
	cell("FREE", READER, (uint8_t *)pair->writer.free.base + POOL_PAGE, pair->free_ring, freed, freed);
}

static void close_pool(struct pool_pair *pair)
{
	forget();
	pool_pair_close(pair);
}

static void the_readers_end_of_a_pool(void **state)
{
	const struct pool_entry note = { .kind = POOL_SWEEP };
	struct pool_pair pair;

	(void)state;
	open_pool(&pair);
	begin(WRITER);
	(void)pool_pair_publish(&pair, 1);
	end("pool.pml", "publish");

	begin(WRITER);
	assert_int_equal(pool_writer_wake(&pair.writer), 0);
	end("pool.pml", "wake_router");

	begin(WRITER);
	assert_int_equal(pool_writer_note(&pair.writer, &note), 0);
	end("pool.pml", "note");

	begin(WRITER);
	assert_true(pool_writer_prepare_sleep(&pair.writer));
	end("pool.pml", "sleep_until_slots_come_back");

	pool_reader_return(&pair.reader, pool_pair_receive(&pair));
	begin(WRITER);
	assert_int_equal(pool_writer_available(&pair.writer), 2);
	end("pool.pml", "take_back");
	close_pool(&pair);
}

static void the_routers_end_of_a_pool(void **state)
{
	const struct pool_counters counters = { .decoded = 1 };
	struct pool_entry entry;
	struct pool_pair pair;
	uint32_t slots[2];

	(void)state;
	open_pool(&pair);
	slots[0] = pool_pair_publish(&pair, 1);
	slots[1] = pool_pair_publish(&pair, 2);

	/* From the store to TAKEN on the entry may be another one. */
	steps.spoil_at = cell_at(&pair.free_head->taken);
	steps.spoil = pair.writer.entries;
	steps.spoil_size = sizeof(entry);
	begin(READER);
	assert_int_equal(pool_reader_next(&pair.reader, &entry), 1);
	steps.spoil_at = NULL;
	assert_int_equal(entry.kind, POOL_DATA);
	assert_int_equal(entry.slot, slots[0]);
	end("pool.pml", "take");

	begin(READER);
	pool_reader_return(&pair.reader, slots[0]);
	end("pool.pml", "give_back");

	assert_int_equal(pool_pair_receive(&pair), slots[1]);
	begin(READER);
	pool_reader_return_all(&pair.reader, &slots[1], 1, &counters);
	end("takeover.pml", "give_back");

	begin(READER);
	assert_int_equal(pool_reader_wake(&pair.reader), 0);
	end("pool.pml", "wake_reader");

	assert_int_equal(pool_reader_next(&pair.reader, &entry), 0);
	begin(READER);
	assert_true(pool_reader_prepare_sleep(&pair.reader));
	end("pool.pml", "sleep");
	close_pool(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_that_drops),
		cmocka_unit_test(a_ring_that_overwrites),
		cmocka_unit_test(a_debt),
		cmocka_unit_test(the_readers_end_of_a_pool),
		cmocka_unit_test(the_routers_end_of_a_pool),
	};

	return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
