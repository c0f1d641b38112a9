/* Any bytes as a blob of state records: read, and taken into the tasks. */
#include "router/state_table.h"
#include "shm/state.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void read_all(const uint8_t *bytes, size_t size)
{
	const struct state_record *record = NULL;
	size_t at = 0, before = 0;
	volatile uint8_t sum = 0;

	while (state_next(bytes, size, &at, &record) == 1) {
		const uint8_t *from = (const uint8_t *)record;

		if (at <= before || at > size || from < bytes || record->size > size - (size_t)(from - bytes))
			abort();
		for (uint32_t i = 0; i < record->size; i++)
			sum = (uint8_t)(sum + from[i]);
		before = at;
	}
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct tasks *tasks = malloc(sizeof(*tasks));
	/* Aligned, as a mapping is, and not a byte longer. */
	uint8_t *copy = malloc(size ? size : 1);
	void *names = NULL;
	size_t names_size = 0;

	if (!tasks || !copy || tasks_init(tasks) < 0)
		abort();
	memcpy(copy, bytes, size);
	read_all(copy, size);
	(void)state_table_learn(tasks, copy, size, true);
	if (state_table_names(copy, size, &names, &names_size) == 0)
		free(names);
	tasks_release(tasks);
	free(tasks);
	free(copy);
}
