/* One kind of event with a field of every sort, and six such events, a to f, for the tests of filters. */
#ifndef TRACEFAN_TESTS_ROUTER_FILTER_EVENTS_H
#define TRACEFAN_TESTS_ROUTER_FILTER_EVENTS_H

#include "router/catalog.h"
#include "router/filter.h"
#include "tests/support/common_fields.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLE_EVENTS 6
#define SAMPLE_ROOM   512

static const char sample_format[] =
	"name: sample\nID: 1000\nformat:\n" COMMON
	"\tfield:u8 u8;\toffset:8;\tsize:1;\tsigned:0;\n"
	"\tfield:s8 s8;\toffset:9;\tsize:1;\tsigned:1;\n"
	"\tfield:u16 u16;\toffset:10;\tsize:2;\tsigned:0;\n"
	"\tfield:s16 s16;\toffset:12;\tsize:2;\tsigned:1;\n"
	"\tfield:bool flag;\toffset:15;\tsize:1;\tsigned:0;\n"
	"\tfield:u32 u32;\toffset:16;\tsize:4;\tsigned:0;\n"
	"\tfield:s32 s32;\toffset:20;\tsize:4;\tsigned:1;\n"
	"\tfield:u64 u64;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:s64 s64;\toffset:32;\tsize:8;\tsigned:1;\n"
	"\tfield:char name[16];\toffset:40;\tsize:16;\tsigned:0;\n"
	"\tfield:__data_loc char[] path;\toffset:56;\tsize:4;\tsigned:0;\n"
	"\tfield:__rel_loc char[] rel;\toffset:60;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc cpumask_t mask;\toffset:64;\tsize:4;\tsigned:0;\n"
	"\tfield:u8 saddr[4];\toffset:68;\tsize:4;\tsigned:0;\n"
	"\tfield:unsigned long args[6];\toffset:72;\tsize:48;\tsigned:0;\n"
	"\tfield:const char * ptr;\toffset:120;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned long gfp;\toffset:128;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned int vec;\toffset:136;\tsize:4;\tsigned:0;\n"
	"\tfield:long state;\toffset:144;\tsize:8;\tsigned:1;\n"
	"\tfield:unsigned long call_site;\toffset:152;\tsize:8;\tsigned:0;\n"
	"\tfield:__data_loc char[] raw;\toffset:160;\tsize:4;\tsigned:0;\n"
	"\n"
	"print fmt: \"name=%s path=%s rel=%s gfp=%s vec=%u [action=%s] state=%s\", REC->name, __get_str(path), "
	"__get_rel_str(rel), __print_flags(REC->gfp, \"|\", { ( gfp_t)0x1u, \"GFP_A\" }, { (1UL << 1), \"GFP_B\" }, "
	"{ 0x10 | 0x20, \"GFP_HIGH\" }), REC->vec, __print_symbolic(REC->vec, { 0, \"HI\" }, { 1, \"TIMER\" }, "
	"{ 2, \"NET_TX\" }, { 3, \"NET_RX\" }, { SOME_ENUM, \"BLOCK\" }, { 9, \"RCU\" }), "
	"(REC->state & 0xff) ? __print_flags(REC->state & ((((0x0 | 0x80) << 1) - 1)), \"|\", { 0x1, \"S\" }, "
	"{ 0x2, \"D\" }, { 0x4, \"T\" }) : \"R\"\n";

struct sample {
	uint8_t payload[SAMPLE_ROOM];
	uint32_t used; /* bytes of the payload */
	struct filter_event event;
};

struct samples {
	struct catalog *catalog;
	const struct schema *schema;
	struct sample at[SAMPLE_EVENTS]; /* a, b, ... f */
};

static inline void sample_number(
	struct samples *samples, struct sample *sample, const char *field, uint64_t value)
{
	int i = schema_find(samples->schema, field);

	if (i < 0)
		abort();
	/* Little end first, as the machines are that these tests run on. */
	memcpy(sample->payload + samples->schema->fields[i].offset, &value,
		samples->schema->fields[i].size);
}

/* Puts bytes behind what is there, and their place and length into the field's word. */
static inline void sample_bytes(struct samples *samples, struct sample *sample, const char *field,
	const void *bytes, uint32_t size)
{
	int i = schema_find(samples->schema, field);
	uint32_t at = sample->used, word;

	if (i < 0 || at + size > SAMPLE_ROOM)
		abort();
	if (samples->schema->fields[i].place == SCHEMA_REL_LOC)
		at -= samples->schema->fields[i].offset + 4;
	word = size << 16 | at;
	memcpy(sample->payload + sample->used, bytes, size);
	memcpy(sample->payload + samples->schema->fields[i].offset, &word, sizeof(word));
	sample->used += size;
}

static inline void sample_text(
	struct samples *samples, struct sample *sample, const char *field, const char *text)
{
	sample_bytes(samples, sample, field, text, (uint32_t)strlen(text) + 1);
}

struct sample_values {
	uint64_t u8, s8, u16, s16, flag, u32, s32, u64, s64;
	char name[17];
	const char *path; /* NULL: as a probe leaves it that could not read it */
	const char *rel;
	uint64_t mask;
	uint8_t saddr[4];
	uint64_t gfp, vec, state, call_site;
	int32_t tid, tgid;
	uint32_t cpu, uid;
	const char *comm, *cgroup;
	uint32_t gid;
	const char *exe;
};

static const struct sample_values sample_values[SAMPLE_EVENTS] = {
	{ 0, 0, 0, 0, 0, 0, 0, 0, 0, "bash", "/etc/passwd", "abc", 1, { 127, 0, 0, 1 }, 0, 0, 0, 0x1000, 100, 100, 0, 0,
		"bash", "/", 0, "/usr/bin/bash" },
	{ 1, -1ULL, 1, -1ULL, 1, 1, -1ULL, 1, -1ULL, "sh", "/etc/shadow", "x y", 2, { 0, 0, 0, 0 }, 1, 1, 1, 0x1010, 200,
		100, 1, 1000, "sh", "/system.slice/a.service", 100, "/usr/bin/dash" },
	{ 255, -128ULL, 65535, -32768ULL, 0, UINT32_MAX, INT32_MIN, UINT64_MAX, INT64_MIN, "fifteen_letters", "", "it's",
		7, { 255, 255, 255, 255 }, 3, 2, 2, 0x1fff, 300, 300, 2, UINT32_MAX, "x.sh", "/user.slice", UINT32_MAX, "/usr/bin/dash (deleted)" },
	{ 128, 127, 32768, 32767, 1, 0x80000000, INT32_MAX, 1ULL << 63, INT64_MAX, "a*b?c[d]", "/tmp/x.so", "say \"hi\"",
		0, { 1, 2, 3, 4 }, 0x10, 3, 0x100, 0x2000, 400, 400, 3, 33, "kworker/0:1", NULL, 33, NULL },
	{ 7, 7, 1000, 1000, 0, 1000000, -100ULL, (1ULL << 63) + 1, -4096ULL, "sixteen_letters!", NULL, "ABC", 1ULL << 63,
		{ 1, 2, 3, 5 }, 0x11, 9, 0x101, 0xffffffff81000000, 500, 0, 0, 0, NULL, NULL, 0, NULL },
	{ 64, 64, 4096, 4096, 1, 0x00ff00ff, 1000000, 1ULL << 32, 1ULL << 32, "sh", "", "\xc3\xa9t\xc3\xa9", 5,
		{ 9, 9, 9, 9 }, 0x20, 10, 3, 0x1234, 600, 600, 5, 1000, "a b", NULL, 1000, NULL },
};

static inline void sample_make(struct samples *samples, size_t i)
{
	const struct sample_values *values = &sample_values[i];
	struct sample *sample = &samples->at[i];

	sample->used = samples->schema->header->fixed_size;
	sample_number(samples, sample, "common_type", 1000);
	sample_number(samples, sample, "common_pid", (uint64_t)values->tid);
	sample_number(samples, sample, "u8", values->u8);
	sample_number(samples, sample, "s8", values->s8);
	sample_number(samples, sample, "u16", values->u16);
	sample_number(samples, sample, "s16", values->s16);
	sample_number(samples, sample, "flag", values->flag);
	sample_number(samples, sample, "u32", values->u32);
	sample_number(samples, sample, "s32", values->s32);
	sample_number(samples, sample, "u64", values->u64);
	sample_number(samples, sample, "s64", values->s64);
	sample_number(samples, sample, "gfp", values->gfp);
	sample_number(samples, sample, "vec", values->vec);
	sample_number(samples, sample, "state", values->state);
	sample_number(samples, sample, "call_site", values->call_site);
	sample_number(samples, sample, "ptr", 0xffff800012345678);
	memcpy(sample->payload + 40, values->name, 16);
	/* What an earlier, longer name left behind the NUL. */
	if (i == 5)
		memcpy(sample->payload + 43, "bash-left", 9);
	memcpy(sample->payload + 68, values->saddr, 4);
	if (!values->path)
		sample_bytes(samples, sample, "path", "", 0);
	else if (i != 5)
		sample_text(samples, sample, "path", values->path);
	sample_text(samples, sample, "rel", values->rel);
	sample_bytes(samples, sample, "mask", &values->mask, sizeof(values->mask));
	sample_text(samples, sample, "raw", "raw");
	sample->event = (struct filter_event){
		.payload = sample->payload,
		.size = sample->used,
		.facts = FILTER_TID,
		.tid = values->tid,
		.tgid = values->tgid,
		.cpu = values->cpu,
		.uid = values->uid,
		.gid = values->gid,
		.exe = values->exe,
		.comm = values->comm,
		.cgroup = values->cgroup,
	};
	if (values->comm)
		sample->event.facts |= FILTER_COMM | FILTER_CPU | FILTER_TGID | FILTER_UID | FILTER_GID;
	if (values->exe)
		sample->event.facts |= FILTER_EXE;
	if (values->cgroup)
		sample->event.facts |= FILTER_CGROUP;
}

static inline int samples_create(struct samples *samples)
{
	struct catalog_event *event;
	const char *reason;

	*samples = (struct samples){ 0 };
	if (catalog_create(false, 8, &samples->catalog))
		return -1;
	if (catalog_add(samples->catalog, "tests", sample_format, strlen(sample_format), &event,
		    &reason))
		return -1;
	samples->schema = &event->schema;
	for (size_t i = 0; i < SAMPLE_EVENTS; i++)
		sample_make(samples, i);
	return 0;
}

static inline void samples_release(struct samples *samples)
{
	catalog_release(samples->catalog);
}

/* For a probe that is called open:file. Returns as filter_parse and filter_compile. */
static inline int sample_compile(const struct schema *schema, const char *text, struct filter_program **ret,
	struct filter_failure *failure)
{
	static const struct filter_environment environment = { .probe = "open:file" };
	struct filter_ast *ast;
	int error = filter_parse(text, strlen(text), &ast, failure);

	if (error)
		return error;
	error = filter_compile(ast, schema, &environment, ret, failure);
	filter_ast_release(ast);
	return error;
}

/* For a group of tests: their state is the samples. */
static inline int samples_setup(void **state)
{
	static struct samples samples;

	*state = &samples;
	return samples_create(&samples);
}

static inline int samples_teardown(void **state)
{
	samples_release(*state);
	return 0;
}

#endif
