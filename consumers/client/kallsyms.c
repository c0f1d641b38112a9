#include "consumers/client/kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* "ADDRESS TYPE NAME[\t[MODULE]]", its parts made texts of their own. Returns whether it is a place in code or data. */
static int parse_line(char *line, struct kallsyms_row *ret)
{
	char *end, *name;

	ret->address = strtoull(line, &end, 16);
	if (end == line || ret->address == 0 || end[0] != ' ' || !end[1] || end[2] != ' ' || !end[3] || end[3] == '\t')
		return 0;
	/* Offsets of per-CPU data, which are no addresses. */
	if (end[1] == 'a' || end[1] == 'A')
		return 0;
	name = end + 3;
	ret->name = name;
	ret->module = NULL;
	name += strcspn(name, "\t");
	if (name[0] && name[1] == '[') {
		ret->module = name + 2;
		name[2 + strcspn(name + 2, "]")] = '\0';
	}
	*name = '\0';
	return 1;
}

static int compare(const void *a, const void *b)
{
	const struct kallsyms_row *x = a, *y = b;

	/* Rows of one address keep the order of the table: the text's. */
	if (x->address == y->address)
		return x->name < y->name ? -1 : x->name > y->name;
	return x->address < y->address ? -1 : 1;
}

int kallsyms_parse(char *text, size_t size, struct kallsyms *ret)
{
	struct kallsyms table = { .text = text };
	size_t lines = 1, end;

	for (size_t i = 0; i < size; i++)
		lines += text[i] == '\n';
	table.rows = calloc(lines, sizeof(*table.rows));
	if (!table.rows) {
		free(text);
		return -ENOMEM;
	}
	for (size_t at = 0; at < size; at = end + 1) {
		/* Not by strcspn: the lines were counted by their ends, whatever else is in them. */
		const char *newline = memchr(text + at, '\n', size - at);

		end = newline ? (size_t)(newline - text) : size;
		text[end] = '\0';
		table.count += (size_t)parse_line(text + at, &table.rows[table.count]);
	}
	qsort(table.rows, table.count, sizeof(*table.rows), compare);
	*ret = table;
	return 0;
}

void kallsyms_release(struct kallsyms *kallsyms)
{
	free(kallsyms->rows);
	free(kallsyms->text);
	*kallsyms = (struct kallsyms){ 0 };
}

const struct kallsyms_row *kallsyms_find(const struct kallsyms *kallsyms, uint64_t address)
{
	size_t low = 0, high = kallsyms->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (kallsyms->rows[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* Of several names the first. */
	while (low > 1 && kallsyms->rows[low - 2].address == kallsyms->rows[low - 1].address)
		low--;
	return low ? &kallsyms->rows[low - 1] : NULL;
}

const struct kallsyms_row *kallsyms_named(const struct kallsyms *kallsyms, const char *name)
{
	const char *colon = strchr(name, ':'), *symbol = colon ? colon + 1 : name;
	size_t module = colon ? (size_t)(colon - name) : 0;
	const struct kallsyms_row *found = NULL;

	for (size_t i = 0; i < kallsyms->count; i++) {
		const struct kallsyms_row *row = &kallsyms->rows[i];

		if (strcmp(row->name, symbol) != 0)
			continue;
		if (colon && (!row->module || strncmp(row->module, name, module) != 0 || row->module[module]))
			continue;
		if (!row->module)
			return row;
		found = found ? found : row;
	}
	return found;
}

int kallsyms_end(const struct kallsyms *kallsyms, const struct kallsyms_row *row, uint64_t *ret)
{
	const struct kallsyms_row *end = kallsyms->rows + kallsyms->count;

	for (const struct kallsyms_row *next = row + 1; next < end; next++) {
		if (next->address == row->address)
			continue;
		*ret = next->address - 1;
		return 0;
	}
	return -ENOENT;
}
