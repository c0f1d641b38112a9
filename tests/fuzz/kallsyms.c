/* Any bytes as the kernel's table of symbols: rows are in order, and each is found by its own address. */
#include "consumers/client/kallsyms.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>
#include <string.h>

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	char *text = malloc(size + 1);
	struct kallsyms table;

	if (!text)
		abort();
	memcpy(text, bytes, size);
	text[size] = '\0';
	if (kallsyms_parse(text, size, &table) < 0)
		abort();
	for (size_t i = 0; i < table.count; i++) {
		const struct kallsyms_row *row = kallsyms_find(&table, table.rows[i].address);

		if (!row || row->address != table.rows[i].address || !*row->name || strlen(row->name) > size)
			abort();
		if (i > 0 && table.rows[i - 1].address > table.rows[i].address)
			abort();
		if (row->module && strlen(row->module) > size)
			abort();
	}
	kallsyms_release(&table);
}
