#include "tests/router/catalog_fixture.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "tests/support/guarded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- how each kind of field is typed ---- */

struct field_case {
	const char *line;  /* "field:..." */
	const char *print; /* the print format's arguments, with its string */
	unsigned int long_size;
	struct schema_field expected; /* name, type and offset aside */
};

static const struct field_case field_cases[] = {
	/* sizes and signs are the file's, whatever the C type says */
	{ "int a;\toffset:8;\tsize:4;\tsigned:1;", "\"%d\", REC->a", 8,
	  { .size = 4, .element_size = 4, .count = 1, .kind = SCHEMA_INTEGER, .flags = SCHEMA_SIGNED } },
	{ "int a;\toffset:8;\tsize:8;\tsigned:0;", "\"0x%08lx\", ((unsigned long)(REC->a))", 8,
	  { .size = 8, .element_size = 8, .count = 1, .kind = SCHEMA_INTEGER, .display = SCHEMA_HEX } },
	{ "unsigned long a;\toffset:8;\tsize:4;\tsigned:0;", "\"%lu\", REC->a", 4,
	  { .size = 4, .element_size = 4, .count = 1, .kind = SCHEMA_INTEGER } },
	{ "u64 a;\toffset:8;\tsize:8;\tsigned:0;", "\"0x%Lx\", REC->a", 8,
	  { .size = 8, .element_size = 8, .count = 1, .kind = SCHEMA_INTEGER, .display = SCHEMA_HEX } },
	{ "u8 a;\toffset:8;\tsize:1;\tsigned:0;", "\"'%c'\", REC->a", 8,
	  { .size = 1, .element_size = 1, .count = 1, .kind = SCHEMA_INTEGER, .display = SCHEMA_CHAR } },
	{ "char a;\toffset:8;\tsize:1;\tsigned:0;", "\"%d\", (int)REC->a", 8,
	  { .size = 1, .element_size = 1, .count = 1, .kind = SCHEMA_INTEGER } },
	{ "bool a;\toffset:8;\tsize:1;\tsigned:0;", "\"%s\", REC->a ? \"yes\" : \"no\"", 8,
	  { .size = 1, .element_size = 1, .count = 1, .kind = SCHEMA_INTEGER, .display = SCHEMA_BOOL } },
	{ "umode_t a;\toffset:8;\tsize:2;\tsigned:0;", "\"0%o\", REC->a", 8,
	  { .size = 2, .element_size = 2, .count = 1, .kind = SCHEMA_INTEGER, .display = SCHEMA_OCTAL } },
	{ "const char * a;\toffset:8;\tsize:8;\tsigned:0;", "\"%s\", REC->a", 8,
	  { .size = 8, .element_size = 8, .count = 1, .kind = SCHEMA_INTEGER, .display = SCHEMA_HEX, .flags = SCHEMA_POINTER } },
	{ "cpumask_t * a;\toffset:8;\tsize:8;\tsigned:0;", "\"\"", 8,
	  { .size = 8, .element_size = 8, .count = 1, .kind = SCHEMA_INTEGER, .display = SCHEMA_HEX, .flags = SCHEMA_POINTER } },
	{ "struct page * a;\toffset:8;\tsize:4;\tsigned:0;", "\"\"", 4,
	  { .size = 4, .element_size = 4, .count = 1, .kind = SCHEMA_INTEGER, .display = SCHEMA_HEX, .flags = SCHEMA_POINTER } },
	{ "char __attribute__((btf_type_tag(\"user\"))) * a;\toffset:8;\tsize:8;\tsigned:0;", "\"\"", 8,
	  { .size = 8, .element_size = 8, .count = 1, .kind = SCHEMA_INTEGER, .display = SCHEMA_HEX, .flags = SCHEMA_POINTER } },
	{ "unsigned long a;\toffset:8;\tsize:8;\tsigned:0;", "\"%pS\", (void *)REC->a", 8,
	  { .size = 8, .element_size = 8, .count = 1, .kind = SCHEMA_INTEGER, .display = SCHEMA_HEX } },
	/* only a plain mention of the field tells its base */
	{ "u32 a;\toffset:8;\tsize:4;\tsigned:0;", "\"%x\", REC->a >> 20", 8,
	  { .size = 4, .element_size = 4, .count = 1, .kind = SCHEMA_INTEGER } },
	{ "u32 a;\toffset:8;\tsize:4;\tsigned:0;", "\"%d 0x%x\", REC->a, REC->a", 8,
	  { .size = 4, .element_size = 4, .count = 1, .kind = SCHEMA_INTEGER } },
	{ "long a;\toffset:8;\tsize:8;\tsigned:1;",
	  "\"%s\", (REC->a & 3) ? __print_flags(REC->a & 3, \"|\", { 1, \"S\" }, { 2, \"D\" }) : \"R\"", 8,
	  { .size = 8, .element_size = 8, .count = 1, .kind = SCHEMA_INTEGER, .flags = SCHEMA_SIGNED | SCHEMA_SYMBOLIC } },
	{ "int a;\toffset:8;\tsize:4;\tsigned:1;", "\"%d %s\", REC->a, __print_symbolic(REC->a, { 0, \"ZERO, (one\" })", 8,
	  { .size = 4, .element_size = 4, .count = 1, .kind = SCHEMA_INTEGER, .flags = SCHEMA_SIGNED | SCHEMA_SYMBOLIC } },
	/* no power of two, and aggregates: bytes */
	{ "struct x a;\toffset:8;\tsize:8;\tsigned:0;", "\"\"", 8,
	  { .size = 8, .element_size = 1, .count = 8, .kind = SCHEMA_BYTES } },
	{ "gid_t a;\toffset:8;\tsize:3;\tsigned:0;", "\"\"", 8,
	  { .size = 3, .element_size = 1, .count = 3, .kind = SCHEMA_BYTES } },
	/* strings in place */
	{ "char a[16];\toffset:8;\tsize:16;\tsigned:0;", "\"%s\", REC->a", 8,
	  { .size = 16, .element_size = 1, .count = 16, .kind = SCHEMA_STRING } },
	{ "char a[TASK_COMM_LEN];\toffset:8;\tsize:16;\tsigned:1;", "\"\"", 8,
	  { .size = 16, .element_size = 1, .count = 16, .kind = SCHEMA_STRING, .flags = SCHEMA_SIGNED } },
	{ "char a[20+1];\toffset:8;\tsize:21;\tsigned:1;", "\"\"", 8,
	  { .size = 21, .element_size = 1, .count = 21, .kind = SCHEMA_STRING, .flags = SCHEMA_SIGNED } },
	{ "u8 a[32];\toffset:8;\tsize:32;\tsigned:0;", "\"%s\", REC->a", 8,
	  { .size = 32, .element_size = 1, .count = 32, .kind = SCHEMA_STRING } },
	/* a char array that is no text */
	{ "char a[6];\toffset:8;\tsize:6;\tsigned:0;", "\"%pM\", REC->a", 8,
	  { .size = 6, .element_size = 1, .count = 6, .kind = SCHEMA_BYTES, .display = SCHEMA_HEX } },
	/* arrays: the elements' size is not what the dimension suggests */
	{ "nid_t a[3];\toffset:8;\tsize:12;\tsigned:0;", "\"%u %u %u\", REC->a[0], REC->a[1], REC->a[2]", 8,
	  { .size = 12, .element_size = 4, .count = 3, .kind = SCHEMA_BYTES } },
	{ "unsigned long a[4];\toffset:8;\tsize:16;\tsigned:0;", "\"\"", 4,
	  { .size = 16, .element_size = 4, .count = 4, .kind = SCHEMA_BYTES } },
	{ "u8 a[32+2];\toffset:8;\tsize:34;\tsigned:0;", "\"\"", 8,
	  { .size = 34, .element_size = 1, .count = 34, .kind = SCHEMA_BYTES } },
	{ "u32 a[NUM_BANDS];\toffset:8;\tsize:12;\tsigned:0;", "\"\"", 8,
	  { .size = 12, .element_size = 4, .count = 3, .kind = SCHEMA_BYTES } },
	{ "xyz_t a[3];\toffset:8;\tsize:6;\tsigned:0;", "\"\"", 8,
	  { .size = 6, .element_size = 2, .count = 3, .kind = SCHEMA_BYTES } },
	{ "struct x * a[2];\toffset:8;\tsize:16;\tsigned:0;", "\"\"", 8,
	  { .size = 16, .element_size = 8, .count = 2, .kind = SCHEMA_BYTES, .display = SCHEMA_HEX, .flags = SCHEMA_POINTER } },
	{ "__u8 a[16];\toffset:8;\tsize:16;\tsigned:0;", "\"%pI6c\", REC->a", 8,
	  { .size = 16, .element_size = 1, .count = 16, .kind = SCHEMA_BYTES, .display = SCHEMA_HEX } },
	/* elsewhere in the event */
	{ "__data_loc char[] a;\toffset:8;\tsize:4;\tsigned:1;", "\"%s\", __get_str(a)", 8,
	  { .size = 4, .element_size = 1, .kind = SCHEMA_STRING, .place = SCHEMA_DATA_LOC, .flags = SCHEMA_SIGNED } },
	{ "__rel_loc char a[];\toffset:8;\tsize:4;\tsigned:0;", "\"%s\", __get_rel_str(a)", 8,
	  { .size = 4, .element_size = 1, .kind = SCHEMA_STRING, .place = SCHEMA_REL_LOC } },
	{ "__data_loc a;\toffset:8;\tsize:2;\tsigned:0;", "\"%s\", __get_str(a)", 8,
	  { .size = 2, .element_size = 1, .kind = SCHEMA_STRING, .place = SCHEMA_DATA_LOC } },
	{ "__data_loc u32[] a;\toffset:8;\tsize:4;\tsigned:0;",
	  "\"%s\", __print_array(__get_dynamic_array(a), __get_dynamic_array_len(a) / 4, 4)", 8,
	  { .size = 4, .element_size = 4, .kind = SCHEMA_BYTES, .place = SCHEMA_DATA_LOC, .display = SCHEMA_HEX } },
	{ "__data_loc u8[] a;\toffset:8;\tsize:4;\tsigned:0;", "\"%s\", __print_hex(__get_dynamic_array(a), REC->n)", 8,
	  { .size = 4, .element_size = 1, .kind = SCHEMA_BYTES, .place = SCHEMA_DATA_LOC, .display = SCHEMA_HEX } },
	{ "__data_loc unsigned long[] a;\toffset:8;\tsize:4;\tsigned:0;", "\"%s\", __get_bitmask(a)", 4,
	  { .size = 4, .element_size = 4, .kind = SCHEMA_BYTES, .place = SCHEMA_DATA_LOC, .display = SCHEMA_BITMASK } },
	{ "__data_loc cpumask_t *[] a;\toffset:8;\tsize:4;\tsigned:0;", "\"%s\", __get_cpumask(a)", 8,
	  { .size = 4, .element_size = 8, .kind = SCHEMA_BYTES, .place = SCHEMA_DATA_LOC, .display = SCHEMA_BITMASK } },
	{ "__data_loc cpumask_t a;\toffset:8;\tsize:4;\tsigned:0;", "\"\"", 4,
	  { .size = 4, .element_size = 4, .kind = SCHEMA_BYTES, .place = SCHEMA_DATA_LOC, .display = SCHEMA_BITMASK } },
	/* size 0: the rest of the event */
	{ "char a[];\toffset:8;\tsize:0;\tsigned:0;", "\"%s\", REC->a", 8,
	  { .element_size = 1, .kind = SCHEMA_STRING, .place = SCHEMA_TAIL } },
	{ "char a;\toffset:8;\tsize:0;\tsigned:0;", "\"%s\", REC->a", 4,
	  { .element_size = 1, .kind = SCHEMA_STRING, .place = SCHEMA_TAIL } },
	{ "u32 a[];\toffset:8;\tsize:0;\tsigned:0;", "\"\"", 8,
	  { .element_size = 4, .kind = SCHEMA_BYTES, .place = SCHEMA_TAIL } },
	{ "unsigned long a[];\toffset:8;\tsize:0;\tsigned:0;", "\"\"", 4,
	  { .element_size = 4, .kind = SCHEMA_BYTES, .place = SCHEMA_TAIL } },
	/* files that don't tell the sign: as C has it */
	{ "int a;\toffset:8;\tsize:4;", "\"\"", 8,
	  { .size = 4, .element_size = 4, .count = 1, .kind = SCHEMA_INTEGER, .flags = SCHEMA_SIGNED } },
	{ "unsigned a;\toffset:8;\tsize:4;", "\"\"", 8,
	  { .size = 4, .element_size = 4, .count = 1, .kind = SCHEMA_INTEGER } },
	{ "unsigned int a;\toffset:8;\tsize:4;", "\"\"", 8,
	  { .size = 4, .element_size = 4, .count = 1, .kind = SCHEMA_INTEGER } },
	{ "const long long a;\toffset:8;\tsize:8;", "\"\"", 8,
	  { .size = 8, .element_size = 8, .count = 1, .kind = SCHEMA_INTEGER, .flags = SCHEMA_SIGNED } },
	{ "pid_t a;\toffset:8;\tsize:4;", "\"\"", 8,
	  { .size = 4, .element_size = 4, .count = 1, .kind = SCHEMA_INTEGER, .flags = SCHEMA_SIGNED } },
	{ "size_t a;\toffset:8;\tsize:8;", "\"\"", 8,
	  { .size = 8, .element_size = 8, .count = 1, .kind = SCHEMA_INTEGER } },
};

static void fields_are_typed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(field_cases); i++) {
		const struct field_case *c = &field_cases[i];
		struct catalog *catalog = catalog_of(false, c->long_size);
		struct catalog_event *event;
		struct schema_field field;
		char text[2048];

		(void)snprintf(text, sizeof(text), EVENT("ev", 77, "\tfield:%s\n", "%s"), c->line, c->print);
		event = add(catalog, "sys", text);
		assert_int_equal(event->schema.header->field_count, COMMON_FIELDS + 1);
		field = event->schema.fields[COMMON_FIELDS];
		assert_string_equal(schema_string(&event->schema, field.name), "a");
		assert_int_equal(field.offset, 8);
		assert_int_equal(event->schema.header->fixed_size, 8 + c->expected.size);
		field.name = field.type = field.offset = 0;
		if (memcmp(&field, &c->expected, sizeof(field)) != 0)
			fail_msg("%s %s: size %u, %u x %u, kind %u place %u display %u flags %u", c->line, c->print,
				field.size, field.count, field.element_size, field.kind, field.place, field.display,
				field.flags);
		catalog_release(catalog);
	}
}

static void what_the_router_precomputes(void **state)
{
	struct catalog *catalog = catalog_of(true, 4);
	struct catalog_event *event = add(catalog, "sys", EVENT("ev", 77, "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n", "\"%d\", REC->a"));

	(void)state;
	assert_int_equal(event->type, 77);
	assert_string_equal(event->system, "sys");
	assert_string_equal(event->name, "ev");
	assert_int_equal(event->pid_offset, 4);
	assert_null(event->user);
	assert_int_equal(event->schema.header->event_type, 77);
	assert_int_equal(event->schema.header->flags, SCHEMA_BIG_ENDIAN | SCHEMA_LONG4);
	assert_string_equal(schema_string(&event->schema, event->schema.header->system), "sys");
	assert_string_equal(schema_string(&event->schema, event->schema.header->event), "ev");
	assert_string_equal(schema_string(&event->schema, event->schema.header->print_format), "\"%d\", REC->a");
	assert_true(event->schema.fields[0].flags & SCHEMA_COMMON);
	assert_false(event->schema.fields[COMMON_FIELDS].flags & SCHEMA_COMMON);
	assert_ptr_equal(catalog_by_type(catalog, 77), event);
	assert_null(catalog_by_type(catalog, 78));
	catalog_release(catalog);
}

/* Real-time kernels have more common fields, and gaps that no field describes. */
static void common_fields_are_the_files_own(void **state)
{
	static const char more[] =
		"name: rt\nID: 5\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
		"\tfield:unsigned char common_migrate_disable;\toffset:8;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_lazy_count;\toffset:9;\tsize:1;\tsigned:0;\n"
		"\n\tfield:int a;\toffset:12;\tsize:4;\tsigned:1;\n\nprint fmt: \"%d\", REC->a\n";
	static const char moved[] =
		"name: moved\nID: 6\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:12;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";
	static const char without[] =
		"name: without\nID: 7\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\nprint fmt: \"\"\n";
	static const uint8_t bytes[16] = { 5, 0, 0, 0, 0x2a, 0, 0, 0, 1, 2, 0xee, 0xee, 0xff, 0xff, 0xff, 0xff };
	struct catalog *catalog = catalog_of(false, 8);
	struct catalog_event *event;
	uint64_t value;
	int field;

	(void)state;
	assert_int_equal(catalog_common_size(catalog), 2);
	event = add(catalog, "sys", more);
	assert_int_equal(event->schema.header->field_count, 7);
	assert_int_equal(catalog_common_size(catalog), 10);
	field = schema_find(&event->schema, "a");
	assert_int_equal(schema_read_integer(&event->schema, &event->schema.fields[field], bytes, sizeof(bytes), &value), 0);
	assert_int_equal((int64_t)value, -1);
	field = schema_find(&event->schema, "common_preempt_lazy_count");
	assert_int_equal(schema_read_integer(&event->schema, &event->schema.fields[field], bytes, sizeof(bytes), &value), 0);
	assert_int_equal(value, 2);
	assert_int_equal(add(catalog, "sys", moved)->pid_offset, 12);
	assert_int_equal(add(catalog, "sys", without)->pid_offset, UINT16_MAX);
	assert_int_equal(catalog_common_size(catalog), 2);
	catalog_release(catalog);
}

/* A probe's array of strings is an array of location words. */
static void string_arrays_become_fields(void **state)
{
	struct catalog *catalog = catalog_of(false, 8);
	struct catalog_event *event = add(catalog, "uprobes",
		EVENT("ev", 9, "\tfield:__data_loc char[][2] arg;\toffset:8;\tsize:8;\tsigned:0;\n",
			"\"arg={\\\"%s\\\",\\\"%s\\\"}\", __get_str(arg[0]), __get_str(arg[1])"));
	const uint8_t payload[] = { 9, 0, 0, 0, 0, 0, 0, 0, 16, 0, 4, 0, 20, 0, 3, 0, 'o', 'n', 'e', 0, 't', 'w', 0 };
	const char *expected[] = { "one", "tw" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		const struct schema_field *field;
		const uint8_t *bytes;
		char name[16];
		size_t size;

		(void)snprintf(name, sizeof(name), "arg[%d]", i);
		assert_int_equal(schema_find(&event->schema, name), COMMON_FIELDS + i);
		field = &event->schema.fields[COMMON_FIELDS + i];
		assert_int_equal(field->kind, SCHEMA_STRING);
		assert_int_equal(field->place, SCHEMA_DATA_LOC);
		assert_int_equal(schema_read_bytes(&event->schema, field, payload, sizeof(payload), &bytes, &size), 0);
		assert_int_equal(size, strlen(expected[i]));
		assert_memory_equal(bytes, expected[i], size);
	}
	catalog_release(catalog);
}

/* ---- files that are refused ---- */

struct refusal {
	const char *text, *reason;
};

static const struct refusal refusals[] = {
	{ "", "it is empty" },
	{ "ID: 1\nformat:\n" COMMON, "it has no name: line" },
	{ "name: \nID: 1\nformat:\n" COMMON, "it has no name: line" },
	{ "name: x\nformat:\n" COMMON, "it has no ID: line" },
	{ "name: x\nID: one\nformat:\n" COMMON, "the ID is no number of an event" },
	{ "name: x\nID: 65536\nformat:\n" COMMON, "the ID is no number of an event" },
	{ "name: x\nID: 99999999999999999999\nformat:\n" COMMON, "the ID is no number of an event" },
	{ "name: x\nID: 1\nformat:\n\nprint fmt: \"\"\n", "it has no field: line" },
	{ "name: x\nID: 1\nformat:\n\tfield:int a;\toffset:0;\n\nprint fmt: \"\"\n", "a field's size is none in an event" },
	{ "name: x\nID: 1\nformat:\n\tfield:int a", "a field's line is cut short" },
	{ "name: x\nID: 1\nformat:\n\tfield:int;\toffset:0;\tsize:4;\n", "a field has no name or no type" },
	{ "name: x\nID: 1\nformat:\n\tfield:char[4];\toffset:0;\tsize:4;\n", "a field has no name or no type" },
	{ EVENT("x", 1, "\tfield:int a;\toffset:8;\tsize:4;\tsigned:2;\n", "\"\""), "a field's sign is neither 0 nor 1" },
	{ EVENT("x", 1, "\tfield:int a;\tsize:4;\tsigned:1;\n", "\"\""), "a field's offset is none in an event" },
	{ "name: x\nID: 1\nformat:\n\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n",
	  "common_type is not the first two bytes" },
	{ EVENT("x", 1, "\tfield:int a;\toffset:65535;\tsize:4;\tsigned:1;\n", "\"\""), "a field's size is none in an event" },
	{ EVENT("x", 1, "\tfield:int a;\toffset:-4;\tsize:4;\tsigned:1;\n", "\"\""), "a field's offset is none in an event" },
	{ EVENT("x", 1, "\tfield:int a;\toffset:4294967292;\tsize:4;\tsigned:1;\n", "\"\""), "a field's offset is none in an event" },
	{ EVENT("x", 1, "\tfield:char a[9];\toffset:8;\tsize:4294967295;\tsigned:1;\n", "\"\""), "a field's size is none in an event" },
	{ EVENT("x", 1, "\tfield:__data_loc char[] a;\toffset:8;\tsize:3;\tsigned:1;\n", "\"\""),
	  "a location word has an impossible size" },
	{ EVENT("x", 1, "\tfield:__rel_loc char[] a;\toffset:8;\tsize:0;\tsigned:1;\n", "\"\""),
	  "a location word has an impossible size" },
};

static void bad_files_are_refused_with_the_reason(void **state)
{
	struct catalog *catalog = catalog_of(false, 8);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		struct catalog_event *event = NULL;
		const char *reason = NULL;

		assert_int_equal(catalog_add(catalog, "sys", refusals[i].text, strlen(refusals[i].text), &event, &reason), -EBADMSG);
		if (strcmp(reason, refusals[i].reason) != 0)
			fail_msg("%s: %s, not %s", refusals[i].text, reason, refusals[i].reason);
		assert_null(event);
	}
	catalog_release(catalog);
}

static void expect_refused(const char *text, size_t size, const char *expected)
{
	struct catalog *catalog = catalog_of(false, 8);
	struct catalog_event *event = NULL;
	const char *reason = NULL;

	assert_int_equal(catalog_add(catalog, "sys", text, size, &event, &reason), -EBADMSG);
	assert_string_equal(reason, expected);
	catalog_release(catalog);
}

static void sizes_are_limited(void **state)
{
	static const char head[] = "name: x\nID: 1\nformat:\n" COMMON;
	static const char nul[] = EVENT("x", 1, "\tfield:int a\0;\toffset:8;\tsize:4;\tsigned:1;\n", "\"\"");
	const size_t room = 1U << 20;
	CLEANUP_FREE char *text = malloc(room);
	size_t size;

	(void)state;
	assert_non_null(text);
	expect_refused(nul, sizeof(nul) - 1, "it holds a NUL");

	memset(text, ' ', room);
	memcpy(text, head, strlen(head));
	expect_refused(text, room, "it is longer than a format file");

	size = (size_t)sprintf(text, "%s", head);
	for (int i = 0; i < 1100; i++)
		size += (size_t)sprintf(text + size, "\tfield:u8 f%d;\toffset:%d;\tsize:1;\tsigned:0;\n", i, 8 + i);
	expect_refused(text, size, "it has too many fields");
}

/* libtraceevent has its own idea of where complaints go. */
static void nothing_is_written_to_stderr(void **state)
{
	struct catalog *catalog = catalog_of(false, 8);
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	char *text = NULL;
	const uint8_t payload[16] = { 1 };

	(void)state;
	assert_non_null(file);
	assert_true(saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		struct catalog_event *event;
		const char *reason;

		(void)catalog_add(catalog, "sys", refusals[i].text, strlen(refusals[i].text), &event, &reason);
	}
	(void)catalog_print(catalog, add(catalog, "sys", EVENT("bad", 1, "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n",
		"\"%d %s\", no_such_function(REC->a), REC->")), payload, sizeof(payload), &text);
	free(text);
	(void)fflush(stderr);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	(void)close(saved);
	assert_int_equal(lseek(fileno(file), 0, SEEK_END), 0);
	(void)fclose(file);
	catalog_release(catalog);
}

/* A format file that was cut anywhere is refused or gives a consistent schema, and nothing behind it is read. */
static void a_file_cut_at_every_place(void **state)
{
	static const char text[] = EVENT("ev", 3,
		"\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:u32 mode;\toffset:12;\tsize:4;\tsigned:0;\n",
		"\"%s %s 0x%x\", __get_str(name), __print_flags(REC->mode, \"|\", { 1, \"A\" }), REC->mode");
	struct guarded guarded;
	unsigned int good = 0;

	(void)state;
	guarded_create(&guarded, sizeof(text));
	for (size_t size = 0; size < sizeof(text); size++) {
		struct catalog *catalog = catalog_of(false, 8);
		struct catalog_event *event = NULL;
		const char *reason = NULL;
		int r = catalog_add(catalog, "sys", (const char *)guarded_copy(&guarded, text, size), size, &event, &reason);

		assert_true(r == 0 || r == -EBADMSG);
		assert_true(r == 0 ? event != NULL : reason != NULL);
		good += r == 0;
		catalog_release(catalog);
	}
	assert_true(good > 1);
	guarded_release(&guarded);
}

/* ---- the catalog ---- */

static void two_systems_have_events_of_one_name(void **state)
{
	struct catalog *catalog = catalog_of(false, 8);
	struct catalog_event *a = add(catalog, "sched", EVENT("sched_switch", 10, ONE_FIELD("int"), "\"\""));
	struct catalog_event *b = add(catalog, "tracepoints", EVENT("sched_switch", 11, ONE_FIELD("u32"), "\"\""));

	(void)state;
	assert_ptr_not_equal(a, b);
	assert_ptr_equal(catalog_by_name(catalog, "sched", "sched_switch"), a);
	assert_ptr_equal(catalog_by_name(catalog, "tracepoints", "sched_switch"), b);
	assert_null(catalog_by_name(catalog, "tracepoints", "sched"));
	assert_ptr_equal(catalog_by_type(catalog, 10), a);
	assert_ptr_equal(catalog_by_type(catalog, 11), b);
	catalog_release(catalog);
}

static void a_known_event_is_replaced_only_by_another_text(void **state)
{
	struct catalog *catalog = catalog_of(false, 8);
	struct catalog_event *first = add(catalog, "p", EVENT("ev", 10, ONE_FIELD("int"), "\"\""));
	struct catalog_event *second;

	(void)state;
	first->user = catalog;
	assert_ptr_equal(add(catalog, "p", EVENT("ev", 10, ONE_FIELD("int"), "\"\"")), first);

	/* Another number: found by the new one, and by the old one no more. */
	second = add(catalog, "p", EVENT("ev", 12, ONE_FIELD("int"), "\"\""));
	assert_ptr_not_equal(second, first);
	assert_null(second->user);
	assert_ptr_equal(catalog_by_name(catalog, "p", "ev"), second);
	assert_null(catalog_by_type(catalog, 10));
	assert_ptr_equal(catalog_by_type(catalog, 12), second);
	/* Who still holds the old one may go on reading it. */
	assert_ptr_equal(first->user, catalog);
	assert_int_equal(first->schema.header->event_type, 10);
	catalog_release(catalog);
}

/* A probe was removed, and its number given to another. */
static void a_number_means_one_event(void **state)
{
	struct catalog *catalog = catalog_of(false, 8);
	struct catalog_event *gone = add(catalog, "p", EVENT("gone", 10, ONE_FIELD("int"), "\"\""));
	struct catalog_event *now = add(catalog, "p", EVENT("now", 10, ONE_FIELD("int"), "\"\""));

	(void)state;
	assert_ptr_equal(catalog_by_type(catalog, 10), now);
	assert_ptr_equal(catalog_by_name(catalog, "p", "now"), now);
	assert_null(catalog_by_name(catalog, "p", "gone"));
	assert_string_equal(gone->name, "gone");
	/* It comes back under a third number. */
	gone = add(catalog, "p", EVENT("gone", 11, ONE_FIELD("int"), "\"\""));
	assert_ptr_equal(catalog_by_name(catalog, "p", "gone"), gone);
	assert_ptr_equal(catalog_by_type(catalog, 10), now);
	catalog_release(catalog);
}

/* user_events may put a dot into a name. */
static void names_keep_their_dots(void **state)
{
	struct catalog *catalog = catalog_of(false, 8);
	struct catalog_event *event = add(catalog, "user_events_multi", EVENT("test.1a", 10, ONE_FIELD("int"), "\"\""));

	(void)state;
	assert_string_equal(event->name, "test.1a");
	assert_ptr_equal(catalog_by_name(catalog, "user_events_multi", "test.1a"), event);
	catalog_release(catalog);
}

static void a_traces_schema_has_its_ids(void **state)
{
	struct catalog *catalog = catalog_of(false, 8);
	struct catalog_event *event = add(catalog, "p", EVENT("ev", 10, ONE_FIELD("int"), "\"\""));
	CLEANUP_FREE void *bytes = NULL;
	struct schema schema;
	size_t size;

	(void)state;
	assert_int_equal(catalog_schema_for(event, 7, UINT64_C(1) << 40, &bytes, &size), 0);
	catalog_release(catalog);
	assert_int_equal(schema_view(bytes, size, &schema), 0);
	assert_int_equal(schema.header->trace_id, 7);
	assert_int_equal(schema.header->probe_id, UINT64_C(1) << 40);
	assert_int_equal(schema_find(&schema, "a"), COMMON_FIELDS);
}

/* ---- location words that lie ---- */

struct word_case {
	uint16_t offset, length;
	int result;
	const char *bytes;
	size_t size;
};

/* The event has 24 bytes; the word stands at 8, the text at 16. */
static void read_words(const char *type, const struct word_case *cases, size_t count)
{
	struct catalog *catalog = catalog_of(false, 8);
	struct guarded guarded;
	struct catalog_event *event;
	char text[1024];

	(void)snprintf(text, sizeof(text), EVENT("ev", 3, "\tfield:%s a;\toffset:8;\tsize:4;\tsigned:0;\n", "\"\""), type);
	event = add(catalog, "sys", text);
	guarded_create(&guarded, 64);
	for (size_t i = 0; i < count; i++) {
		uint8_t payload[24] = { 3, 0, 0, 0, 0, 0, 0, 0,
			(uint8_t)cases[i].offset, (uint8_t)(cases[i].offset >> 8), (uint8_t)cases[i].length,
			(uint8_t)(cases[i].length >> 8), 0, 0, 0, 0, 'e', 't', 'h', '0', 'w', 'x', 'y', 'z' };
		const uint8_t *copy = guarded_copy(&guarded, payload, sizeof(payload));
		const uint8_t *bytes = NULL;
		size_t size = 0;

		assert_int_equal(schema_read_bytes(&event->schema, &event->schema.fields[COMMON_FIELDS], copy, sizeof(payload),
			&bytes, &size), cases[i].result);
		assert_int_equal(size, cases[i].size);
		if (size)
			assert_memory_equal(bytes, cases[i].bytes, size);
	}
	guarded_release(&guarded);
	catalog_release(catalog);
}

static void data_locations(void **state)
{
	const struct word_case cases[] = {
		{ 16, 4, 0, "eth0", 4 },
		{ 16, 8, 0, "eth0wxyz", 8 }, /* no NUL */
		{ 15, 3, 0, "", 0 },         /* a NUL at once */
		{ 24, 0, 0, "", 0 },
		{ 0, 0, 0, "", 0 }, /* a word of 0 is an empty string */
		{ 16, 9, -EBADMSG, NULL, 0 },
		{ 25, 0, -EBADMSG, NULL, 0 },
		{ 16, 65535, -EBADMSG, NULL, 0 },
		{ 65535, 65535, -EBADMSG, NULL, 0 },
	};

	(void)state;
	read_words("__data_loc char[]", cases, ARRAY_SIZE(cases));
}

/* Offsets count from the word's end, 12. */
static void relative_locations(void **state)
{
	const struct word_case cases[] = {
		{ 4, 4, 0, "eth0", 4 },
		{ 4, 8, 0, "eth0wxyz", 8 },
		{ 12, 0, 0, "", 0 },
		{ 0, 0, 0, "", 0 },
		{ 4, 9, -EBADMSG, NULL, 0 },
		{ 13, 0, -EBADMSG, NULL, 0 },
		{ 4, 65535, -EBADMSG, NULL, 0 },
		{ 65535, 1, -EBADMSG, NULL, 0 },
	};

	(void)state;
	read_words("__rel_loc char[]", cases, ARRAY_SIZE(cases));
}

/* Strings that a probe fetches from memory may be missing; a tracepoint's are there. */
static void strings_of_probes(void **state)
{
	static const char word[] = "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"
				   "\tfield:__data_loc char[] s;\toffset:16;\tsize:4;\tsigned:1;\n"
				   "\tfield:u32 n;\toffset:20;\tsize:4;\tsigned:0;\n";
	struct catalog *catalog = catalog_of(false, 8);
	char text[1024];
	const struct schema *schema;

	(void)state;
	(void)snprintf(text, sizeof(text), EVENT("probe", 1, "%s", "\"(%%lx) s=\\\"%%s\\\" n=%%u\", REC->__probe_ip, "
		"__get_str(s), REC->n"), word);
	schema = &add(catalog, "group", text)->schema;
	assert_int_equal(schema->fields[schema_find(schema, "s")].flags & SCHEMA_FALLIBLE, SCHEMA_FALLIBLE);
	assert_int_equal(schema->fields[schema_find(schema, "n")].flags & SCHEMA_FALLIBLE, 0);
	(void)snprintf(text, sizeof(text), EVENT("event", 2, "%s", "\"s=%%s\", __get_str(s)"), strstr(word, "\tfield:__data"));
	schema = &add(catalog, "group", text)->schema;
	assert_int_equal(schema->fields[schema_find(schema, "s")].flags & SCHEMA_FALLIBLE, 0);
	catalog_release(catalog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_typed),
		cmocka_unit_test(what_the_router_precomputes),
		cmocka_unit_test(common_fields_are_the_files_own),
		cmocka_unit_test(string_arrays_become_fields),
		cmocka_unit_test(bad_files_are_refused_with_the_reason),
		cmocka_unit_test(sizes_are_limited),
		cmocka_unit_test(nothing_is_written_to_stderr),
		cmocka_unit_test(a_file_cut_at_every_place),
		cmocka_unit_test(two_systems_have_events_of_one_name),
		cmocka_unit_test(a_known_event_is_replaced_only_by_another_text),
		cmocka_unit_test(a_number_means_one_event),
		cmocka_unit_test(names_keep_their_dots),
		cmocka_unit_test(a_traces_schema_has_its_ids),
		cmocka_unit_test(data_locations),
		cmocka_unit_test(relative_locations),
		cmocka_unit_test(strings_of_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
