#include "router/catalog.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "router/format.h"
#include "router/printer.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define CATALOG_TYPES 65536U

/* An event as the catalog keeps it. The public part comes first, so that a pointer to it is one to this. */
struct catalog_row {
	struct catalog_event event;
	char *text; /* the format file, NUL-ended */
	size_t text_size;
	uint32_t common_size;
	struct printer *printer; /* made when the event is first printed */
	struct catalog_row *next; /* all rows ever made, replaced ones too: their pointers stay good */
};

struct catalog {
	struct format_target target;
	struct catalog_row *rows;
	struct catalog_event *by_type[CATALOG_TYPES]; /* half a megabyte, of which a session touches little */
	void *by_name;                  /* tsearch tree of struct catalog_event, by system and name */
	char *printk_formats;           /* all of them, NUL-ended, or NULL */
	size_t printk_size;
	uint32_t common_size;           /* the least of all events, 0: none yet */
};

static int compare_names(const void *a, const void *b)
{
	const struct catalog_event *x = a, *y = b;
	int order = strcmp(x->system, y->system);

	return order ? order : strcmp(x->name, y->name);
}

int catalog_create(bool big_endian, unsigned int long_size, struct catalog **ret)
{
	struct catalog *catalog = calloc(1, sizeof(*catalog));

	if (!catalog)
		return -ENOMEM;
	catalog->target = (struct format_target){ .big_endian = big_endian, .long_size = long_size };
	*ret = catalog;
	return 0;
}

static void row_release(struct catalog_row *row)
{
	if (!row)
		return;
	printer_release(row->printer);
	free(row->event.system);
	free(row->event.name);
	free(row->event.schema_bytes);
	free(row->text);
	free(row);
}

static void cleanup_row(struct catalog_row **row)
{
	row_release(*row);
}
#define CLEANUP_ROW __attribute__((cleanup(cleanup_row)))

/* The tree's nodes point at rows, which are freed by their list. */
static void keep_node(void *node)
{
	(void)node;
}

void catalog_release(struct catalog *catalog)
{
	if (!catalog)
		return;
	tdestroy(catalog->by_name, keep_node);
	while (catalog->rows) {
		struct catalog_row *row = catalog->rows;

		catalog->rows = row->next;
		row_release(row);
	}
	free(catalog->printk_formats);
	free(catalog);
}

struct catalog_event *catalog_by_type(const struct catalog *catalog, uint16_t type)
{
	return catalog->by_type[type];
}

struct catalog_event *catalog_by_name(const struct catalog *catalog, const char *system, const char *name)
{
	/* tfind takes the key as const but its tree is typed by what tsearch was given. */
	const struct catalog_event key = { .system = (char *)system, .name = (char *)name };
	struct catalog_event *const *found = tfind(&key, &catalog->by_name, compare_names);

	return found ? *found : NULL;
}

/* Common fields and all that the router precomputes. */
static void row_precompute(struct catalog_row *row)
{
	const struct schema *schema = &row->event.schema;

	row->event.type = (uint16_t)schema->header->event_type;
	row->event.pid_offset = UINT16_MAX;
	for (uint32_t i = 0; i < schema->header->field_count; i++) {
		const struct schema_field *field = &schema->fields[i];

		if (!(field->flags & SCHEMA_COMMON))
			continue;
		if (field->offset + field->size > row->common_size)
			row->common_size = field->offset + field->size;
		if (field->kind == SCHEMA_INTEGER && field->size == 4 && field->offset < UINT16_MAX &&
			!strcmp(schema_string(schema, field->name), "common_pid"))
			row->event.pid_offset = (uint16_t)field->offset;
	}
}

static int row_create(const struct catalog *catalog, const char *system, const char *text, size_t size,
	struct catalog_row **ret, const char **ret_reason)
{
	CLEANUP_ROW struct catalog_row *row = calloc(1, sizeof(*row));
	int r;

	if (!row)
		return -ENOMEM;
	r = format_schema(&catalog->target, system, text, size, &row->event.schema_bytes,
		&row->event.schema_size, ret_reason);
	if (r)
		return r;
	r = schema_view(row->event.schema_bytes, row->event.schema_size, &row->event.schema);
	if (r) {
		*ret_reason = "the fields make no consistent schema";
		return r;
	}
	row->text = malloc(size + 1);
	row->event.system = strdup(system);
	row->event.name = strdup(schema_string(&row->event.schema, row->event.schema.header->event));
	if (!row->text || !row->event.system || !row->event.name)
		return -ENOMEM;
	memcpy(row->text, text, size);
	row->text[size] = '\0';
	row->text_size = size;
	row_precompute(row);
	*ret = TAKE_PTR(row);
	return 0;
}

/* Takes an event that another has replaced out of both indexes. */
static void catalog_displace(struct catalog *catalog, const struct catalog_event *event)
{
	if (!event)
		return;
	if (catalog->by_type[event->type] == event)
		catalog->by_type[event->type] = NULL;
	if (catalog_by_name(catalog, event->system, event->name) == event)
		tdelete(event, &catalog->by_name, compare_names);
}

int catalog_add(struct catalog *catalog, const char *system, const char *text, size_t size,
	struct catalog_event **ret, const char **ret_reason)
{
	CLEANUP_ROW struct catalog_row *row = NULL;
	struct catalog_event *known;
	const char *reason = NULL;
	int r = row_create(catalog, system, text, size, &row, &reason);

	if (r) {
		if (r == -EBADMSG && ret_reason)
			*ret_reason = reason;
		return r;
	}
	known = catalog_by_name(catalog, system, row->event.name);
	if (known) {
		const struct catalog_row *old = (const struct catalog_row *)known;

		if (old->text_size == size && !memcmp(old->text, text, size)) {
			*ret = known;
			return 0;
		}
	}
	/* One number means one event: whoever had this one before is gone from the kernel. */
	catalog_displace(catalog, known);
	catalog_displace(catalog, catalog->by_type[row->event.type]);
	if (!tsearch(&row->event, &catalog->by_name, compare_names))
		return -ENOMEM;
	catalog->by_type[row->event.type] = &row->event;
	if (!catalog->common_size || row->common_size < catalog->common_size)
		catalog->common_size = row->common_size;
	row->next = catalog->rows;
	catalog->rows = row;
	*ret = &row->event;
	row = NULL;
	return 0;
}

void catalog_remove(struct catalog *catalog, struct catalog_event *event)
{
	struct catalog_row **place = &catalog->rows;
	struct catalog_row *row;

	catalog_displace(catalog, event);
	while (*place && &(*place)->event != event)
		place = &(*place)->next;
	row = *place;
	if (!row)
		return;
	*place = row->next;
	row_release(row);
}

int catalog_schema_for(const struct catalog_event *event, uint64_t trace_id, uint64_t probe_id,
	void **ret_bytes, size_t *ret_size)
{
	struct schema_header *header = malloc(event->schema_size);

	if (!header)
		return -ENOMEM;
	memcpy(header, event->schema_bytes, event->schema_size);
	header->trace_id = trace_id;
	header->probe_id = probe_id;
	*ret_bytes = header;
	*ret_size = event->schema_size;
	return 0;
}

uint32_t catalog_common_size(const struct catalog *catalog)
{
	/* common_type is in every kernel's. */
	return catalog->common_size ? catalog->common_size : sizeof(uint16_t);
}

/* ---- events as the kernel would print them ---- */

int catalog_add_printk_formats(struct catalog *catalog, const char *text, size_t size)
{
	char *joined;

	if (memchr(text, '\0', size))
		return -EBADMSG;
	joined = realloc(catalog->printk_formats, catalog->printk_size + size + 2);
	if (!joined)
		return -ENOMEM;
	memcpy(joined + catalog->printk_size, text, size);
	catalog->printk_formats = joined;
	catalog->printk_size += size;
	if (size && text[size - 1] != '\n')
		joined[catalog->printk_size++] = '\n';
	joined[catalog->printk_size] = '\0';

	/* Those made with fewer. */
	for (struct catalog_row *row = catalog->rows; row; row = row->next) {
		printer_release(row->printer);
		row->printer = NULL;
	}
	return 0;
}

int catalog_print(struct catalog *catalog, const struct catalog_event *event, const void *data, size_t size,
	char **ret_text)
{
	struct catalog_row *row = (struct catalog_row *)event;
	int r;

	if (!row->printer) {
		r = printer_create(&catalog->target, &event->schema, row->text, row->text_size,
			catalog->printk_formats, &row->printer);
		if (r)
			return r;
	}
	return printer_print(row->printer, data, size, ret_text);
}
