/* Everything that page, catalog and schema make of raw pages, a JSON object per line, for the tests that
 * compare it with what others say of the same bytes.
 *
 *   page_dump DIR                       pages and events of a folder that is laid out as tracefs lays it
 *   page_dump --record ORDER LONG HEX   one event without a page; its format file on standard input
 *   page_dump --formats LONG FILE...    each file's fields, as we and as libtraceevent read them
 *
 * ORDER is "big" or "little", LONG 4 or 8. Bytes of strings stand as U+0000..U+00FF. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "router/catalog.h"
#include "router/page.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <traceevent/event-parse.h>

#define CPUS_MAX 4096

struct dump {
	const char *folder;
	struct page_layout layout;
	struct catalog *catalog;
};

static int die(const char *what, int error)
{
	fprintf(stderr, "page_dump: %s: %s\n", what, strerror(-error));
	return 1;
}

/* The whole file or stream, NUL-ended; the caller's. */
static char *read_stream(FILE *file, size_t *ret_size)
{
	size_t room = 1 << 16, size = 0, n;
	char *bytes = malloc(room + 1);

	while (bytes && (n = fread(bytes + size, 1, room - size, file)) > 0) {
		size += n;
		if (size == room) {
			char *more = realloc(bytes, 2 * room + 1);

			if (!more)
				free(bytes);
			bytes = more;
			room *= 2;
		}
	}
	if (!bytes)
		exit(die("memory", -ENOMEM));
	bytes[size] = '\0';
	*ret_size = size;
	return bytes;
}

/* NULL where there is no such file. */
static char *read_file(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "re");
	char *bytes;

	if (!file)
		return NULL;
	bytes = read_stream(file, ret_size);
	(void)fclose(file);
	return bytes;
}

static void put_string(const void *bytes, size_t size)
{
	const uint8_t *p = bytes;

	putchar('"');
	for (size_t i = 0; i < size; i++) {
		if (p[i] < 0x20 || p[i] > 0x7e || p[i] == '"' || p[i] == '\\')
			printf("\\u%04x", p[i]);
		else
			putchar(p[i]);
	}
	putchar('"');
}

static void put_text(const char *text)
{
	put_string(text, strlen(text));
}

static void put_hex(const uint8_t *bytes, size_t size)
{
	putchar('"');
	for (size_t i = 0; i < size; i++)
		printf("%02x", bytes[i]);
	putchar('"');
}

/* ---- events ---- */

static void put_elements(const struct schema *schema, const struct schema_field *field, const uint8_t *data, size_t size)
{
	uint64_t value;

	for (size_t i = 0; !schema_read_element(schema, field, data, size, i, &value); i++) {
		printf(i ? "," : "");
		if (field->flags & SCHEMA_SIGNED)
			printf("%" PRId64, (int64_t)value);
		else
			printf("%" PRIu64, value);
	}
}

static void put_value(const struct schema *schema, const struct schema_field *field, const uint8_t *data, size_t size)
{
	const uint8_t *bytes;
	uint64_t value;
	size_t length;
	int r;

	if (field->kind == SCHEMA_INTEGER) {
		r = schema_read_integer(schema, field, data, size, &value);
		if (!r && field->flags & SCHEMA_SIGNED)
			printf("%" PRId64, (int64_t)value);
		else if (!r)
			printf("%" PRIu64, value);
	} else {
		r = schema_read_bytes(schema, field, data, size, &bytes, &length);
		if (!r && field->kind == SCHEMA_STRING) {
			put_string(bytes, length);
		} else if (!r) {
			printf("{\"hex\":");
			put_hex(bytes, length);
			printf(",\"elements\":[");
			put_elements(schema, field, data, size);
			printf("]}");
		}
	}
	if (r)
		printf("{\"error\":%d}", -r);
}

static void put_fields(const struct schema *schema, const uint8_t *data, size_t size)
{
	printf("\"fields\":[");
	for (uint32_t i = 0; i < schema->header->field_count; i++) {
		printf(i ? ",[" : "[");
		put_text(schema_string(schema, schema->fields[i].name));
		putchar(',');
		put_value(schema, &schema->fields[i], data, size);
		putchar(']');
	}
	putchar(']');
}

static void put_event(struct catalog *catalog, const uint8_t *data, size_t size, bool big_endian)
{
	uint16_t type = (uint16_t)(big_endian ? data[0] << 8 | data[1] : data[1] << 8 | data[0]);
	struct catalog_event *event = catalog_by_type(catalog, type);
	CLEANUP_FREE char *text = NULL;

	printf("\"type\":%u,\"size\":%zu,\"data\":", type, size);
	put_hex(data, size);
	if (!event)
		return;
	printf(",\"system\":");
	put_text(event->system);
	printf(",\"event\":");
	put_text(event->name);
	putchar(',');
	put_fields(&event->schema, data, size);
	if (!catalog_print(catalog, event, data, size, &text)) {
		printf(",\"text\":");
		put_text(text);
	}
}

/* ---- pages ---- */

static void put_page(struct dump *dump, unsigned int cpu, size_t index, const uint8_t *page, size_t size)
{
	struct page_cursor cursor;
	struct page_event event;
	uint64_t last = 0;
	uint32_t count = 0;

	if (!page_open(&cursor, &dump->layout, page, size))
		count = page_count(&cursor, &last);
	while (page_next(&cursor, &event) > 0) {
		printf("{\"kind\":\"event\",\"cpu\":%u,\"page\":%zu,\"time\":%" PRIu64 ",", cpu, index, event.time);
		if (event.size >= 2)
			put_event(dump->catalog, event.data, event.size, dump->layout.big_endian);
		puts("}");
	}
	printf("{\"kind\":\"page\",\"cpu\":%u,\"page\":%zu,\"start\":%" PRIu64 ",\"last\":%" PRIu64 ",\"events\":%u", cpu, index,
		cursor.start_time, last, count);
	printf(",\"missed\":%s,\"missed_count\":", cursor.missed ? "true" : "false");
	if (cursor.missed_counted)
		printf("%" PRIu64, cursor.missed_count);
	else
		printf("null");
	printf(",\"error\":");
	if (cursor.error)
		put_text(page_error_name(cursor.error));
	else
		printf("null");
	printf(",\"error_at\":%u}\n", cursor.error_at);
}

static int put_cpus(struct dump *dump)
{
	for (unsigned int cpu = 0; cpu < CPUS_MAX; cpu++) {
		CLEANUP_FREE char *bytes = NULL;
		char path[4096];
		size_t size;

		(void)snprintf(path, sizeof(path), "%s/per_cpu/cpu%u/trace_pipe_raw", dump->folder, cpu);
		bytes = read_file(path, &size);
		for (size_t at = 0; bytes && at < size; at += dump->layout.size) {
			size_t rest = size - at;

			put_page(dump, cpu, at / dump->layout.size, (uint8_t *)bytes + at,
				rest < dump->layout.size ? rest : dump->layout.size);
		}
	}
	return 0;
}

/* ---- format files ---- */

static int add_format(struct dump *dump, const char *system, const char *event)
{
	CLEANUP_FREE char *text = NULL;
	struct catalog_event *added;
	const char *reason = "";
	char path[4096];
	size_t size;
	int r;

	(void)snprintf(path, sizeof(path), "%s/events/%s/%s/format", dump->folder, system, event);
	text = read_file(path, &size);
	if (!text)
		return 0;
	r = catalog_add(dump->catalog, system, text, size, &added, &reason);
	if (r)
		fprintf(stderr, "page_dump: %s: %s\n", path, reason);
	return r;
}

/* Calls `add` for each entry of DIR/events/SYSTEM. */
static int add_system(struct dump *dump, const char *system)
{
	char path[4096];
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	(void)snprintf(path, sizeof(path), "%s/events/%s", dump->folder, system);
	dir = opendir(path);
	if (!dir)
		return errno == ENOTDIR ? 0 : -errno;
	while (!r && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			r = add_format(dump, system, entry->d_name);
	(void)closedir(dir);
	return r;
}

static int add_systems(struct dump *dump)
{
	char path[4096];
	struct dirent *entry;
	DIR *dir;
	int r = 0;

	(void)snprintf(path, sizeof(path), "%s/events", dump->folder);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!r && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			r = add_system(dump, entry->d_name);
	(void)closedir(dir);
	return r;
}

static int dump_folder(const char *folder)
{
	CLEANUP_FREE char *header = NULL, *formats = NULL;
	struct dump dump = { .folder = folder };
	char path[4096];
	size_t size;
	int r;

	(void)snprintf(path, sizeof(path), "%s/events/header_page", folder);
	header = read_file(path, &size);
	if (!header || page_layout_parse(header, size, false, &dump.layout))
		return die(path, header ? -EBADMSG : -ENOENT);
	r = catalog_create(false, dump.layout.commit_size, &dump.catalog);
	if (r)
		return die("catalog", r);
	r = add_systems(&dump);
	(void)snprintf(path, sizeof(path), "%s/printk_formats", folder);
	formats = read_file(path, &size);
	if (!r && formats)
		r = catalog_add_printk_formats(dump.catalog, formats, size);
	if (!r)
		r = put_cpus(&dump);
	catalog_release(dump.catalog);
	return r ? die(folder, r) : 0;
}

/* ---- one event ---- */

static int dump_record(const char *order, const char *long_size, const char *hex)
{
	CLEANUP_FREE char *text = NULL;
	CLEANUP_FREE uint8_t *data = calloc(1, strlen(hex) / 2 + 2);
	bool big_endian = !strcmp(order, "big");
	struct catalog_event *event;
	struct catalog *catalog;
	const char *reason = "";
	size_t size;
	int r;

	text = read_stream(stdin, &size);
	r = catalog_create(big_endian, (unsigned int)atoi(long_size), &catalog);
	if (r || !data)
		return die("catalog", -ENOMEM);
	r = catalog_add(catalog, "sys", text, size, &event, &reason);
	if (r)
		return die(reason, r);
	for (size_t i = 0; i < strlen(hex) / 2; i++)
		(void)sscanf(hex + 2 * i, "%2hhx", &data[i]);
	putchar('{');
	put_event(catalog, data, strlen(hex) / 2, big_endian);
	puts("}");
	catalog_release(catalog);
	return 0;
}

/* ---- two readings of a format file ---- */

static void put_schema(const struct schema *schema)
{
	static const char *const kinds[] = { "", "integer", "string", "bytes" };
	static const char *const places[] = { "fixed", "data_loc", "rel_loc", "tail" };
	static const char *const displays[] = { "decimal", "hex", "octal", "char", "bool", "bitmask" };

	printf(",\"fields\":[");
	for (uint32_t i = 0; i < schema->header->field_count; i++) {
		const struct schema_field *field = &schema->fields[i];

		printf(i ? ",{\"name\":" : "{\"name\":");
		put_text(schema_string(schema, field->name));
		printf(",\"type\":");
		put_text(schema_string(schema, field->type));
		printf(",\"offset\":%u,\"size\":%u,\"element_size\":%u,\"count\":%u,\"signed\":%d,\"pointer\":%d,\"symbolic\":%d",
			field->offset, field->size, field->element_size, field->count, field->flags & SCHEMA_SIGNED ? 1 : 0,
			field->flags & SCHEMA_POINTER ? 1 : 0, field->flags & SCHEMA_SYMBOLIC ? 1 : 0);
		printf(",\"kind\":\"%s\",\"place\":\"%s\",\"display\":\"%s\"}", kinds[field->kind], places[field->place],
			displays[field->display]);
	}
	putchar(']');
}

static void put_tep_list(const struct tep_format_field *field, bool *first)
{
	for (; field; field = field->next) {
		printf(*first ? "{\"name\":" : ",{\"name\":");
		*first = false;
		put_text(field->name);
		printf(",\"type\":");
		put_text(field->type);
		printf(",\"offset\":%d,\"size\":%d,\"signed\":%d}", field->offset, field->size,
			field->flags & TEP_FIELD_IS_SIGNED ? 1 : 0);
	}
}

/* The print format is withheld: the library leaks on some. */
static void put_tep(char *text, const char *system)
{
	struct tep_handle *tep = tep_alloc();
	struct tep_event *event = NULL;
	char *print = strstr(text, "\nprint fmt:");
	bool first = true;

	tep_set_loglevel(TEP_LOG_NONE);
	if (print)
		*print = '\0';
	(void)tep_parse_format(tep, &event, text, strlen(text), system);
	printf(",\"libtraceevent\":[");
	if (event) {
		put_tep_list(event->format.common_fields, &first);
		put_tep_list(event->format.fields, &first);
	}
	putchar(']');
	tep_free(tep);
}

static int dump_format(const char *path, unsigned int long_size)
{
	CLEANUP_FREE char *text = NULL;
	struct catalog_event *event;
	struct catalog *catalog;
	const char *reason = "";
	size_t size;

	/* Others' probes come and go. */
	text = read_file(path, &size);
	if (!text)
		return 0;
	if (catalog_create(false, long_size, &catalog))
		return die("catalog", -ENOMEM);
	printf("{\"file\":");
	put_text(path);
	if (catalog_add(catalog, "sys", text, size, &event, &reason)) {
		printf(",\"refused\":");
		put_text(reason);
	} else {
		printf(",\"event\":");
		put_text(event->name);
		printf(",\"type\":%u,\"pid_offset\":%u,\"fixed_size\":%u", event->type, event->pid_offset,
			event->schema.header->fixed_size);
		put_schema(&event->schema);
	}
	catalog_release(catalog);
	put_tep(text, "sys");
	puts("}");
	return 0;
}

int main(int argc, char **argv)
{
	int r = 0;

	if (argc == 2)
		return dump_folder(argv[1]);
	if (argc == 5 && !strcmp(argv[1], "--record"))
		return dump_record(argv[2], argv[3], argv[4]);
	if (argc < 4 || strcmp(argv[1], "--formats") != 0) {
		fprintf(stderr, "usage: page_dump DIR | --record big|little LONG HEX | --formats LONG FILE...\n");
		return 2;
	}
	for (int i = 3; i < argc && !r; i++)
		r = dump_format(argv[i], (unsigned int)atoi(argv[2]));
	return r;
}
