/* Random filters and random events of the sort of filter_events.h. Values come from small pools, so
 * that filters and events meet. The same seed gives the same ones on every machine. */
#ifndef TRACEFAN_TESTS_ROUTER_FILTER_RANDOM_H
#define TRACEFAN_TESTS_ROUTER_FILTER_RANDOM_H

#include "tests/router/filter_events.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *random)
{
	uint64_t x = random->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static inline unsigned int random_below(struct random *random, unsigned int limit)
{
	return (unsigned int)(random_next(random) % limit);
}

struct random_text {
	char at[2048];
	size_t size;
};

__attribute__((format(printf, 2, 3))) static inline void random_add(
	struct random_text *text, const char *format, ...)
{
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(text->at + text->size, sizeof(text->at) - text->size, format, arguments);
	va_end(arguments);
	if (size < 0 || (size_t)size >= sizeof(text->at) - text->size)
		abort();
	text->size += (size_t)size;
}

/* ---- numbers ---- */

struct random_field {
	const char *name;
	unsigned int bits;
	bool is_signed;
};

static const struct random_field random_fields[] = {
	{ "u8", 8, false },
	{ "s8", 8, true },
	{ "u16", 16, false },
	{ "s16", 16, true },
	{ "u32", 32, false },
	{ "s32", 32, true },
	{ "u64", 64, false },
	{ "s64", 64, true },
	{ "flag", 8, false },
	{ "gfp", 64, false },
	{ "vec", 32, false },
	{ "state", 64, true },
	{ "saddr", 32, false },
	{ "CPU", 32, true },
	{ "tid", 32, true },
	{ "common_pid", 32, true },
	{ "pid", 32, true },
	{ "uid", 32, false },
	{ "gid", 32, false },
};

#define RANDOM_FIELDS (sizeof(random_fields) / sizeof(random_fields[0]))

/* A value of the field's width, sign-extended where it is signed: mostly small, or at an edge. */
static inline uint64_t random_value(struct random *random, const struct random_field *field)
{
	uint64_t value = random_below(random, 6), sign = 1ULL << (field->bits - 1);

	switch (random_below(random, 8)) {
	case 0:
		value = sign + value - 3;
		break;
	case 1:
		value = 0 - value;
		break;
	case 2:
		value = 1ULL << random_below(random, field->bits);
		break;
	default:
		break;
	}
	if (field->bits == 64)
		return value;
	value &= (1ULL << field->bits) - 1;
	return field->is_signed && (value & sign) ? value | ~((1ULL << field->bits) - 1) : value;
}

static inline void random_number(
	struct random *random, struct random_text *text, const struct random_field *field)
{
	uint64_t value = random_value(random, field);

	if (field->is_signed)
		random_add(text, "%" PRId64, (int64_t)value);
	else
		random_add(text, random_below(random, 2) ? "%" PRIu64 : "0x%" PRIx64, value);
}

static inline const char *random_symbol(struct random *random, const char *field)
{
	static const char *const vec[] = { "HI", "TIMER", "NET_TX", "NET_RX", "RCU" };
	static const char *const gfp[] = { "GFP_A", "GFP_B", "GFP_A|GFP_B", "GFP_HIGH" };
	static const char *const state[] = { "S", "D", "S|D" };

	if (!strcmp(field, "vec"))
		return vec[random_below(random, 5)];
	if (!strcmp(field, "gfp"))
		return gfp[random_below(random, 4)];
	return strcmp(field, "state") != 0 ? NULL : state[random_below(random, 3)];
}

static inline void random_number_or_symbol(
	struct random *random, struct random_text *text, const struct random_field *field)
{
	const char *symbol = random_below(random, 2) ? random_symbol(random, field->name) : NULL;

	if (symbol)
		random_add(text, "%s", symbol);
	else
		random_number(random, text, field);
}

static inline void random_range(
	struct random *random, struct random_text *text, const struct random_field *field)
{
	uint64_t a = random_value(random, field), b = random_value(random, field);
	bool turned = field->is_signed ? (int64_t)a > (int64_t)b : a > b;

	if (field->is_signed)
		random_add(text, "%" PRId64 "..%" PRId64, (int64_t)(turned ? b : a),
			(int64_t)(turned ? a : b));
	else
		random_add(text, "%" PRIu64 "..%" PRIu64, turned ? b : a, turned ? a : b);
}

static inline void random_cpus(struct random *random, struct random_text *text)
{
	unsigned int low = random_below(random, 5);

	random_add(text, "CPUS{%u", low);
	if (random_below(random, 2))
		random_add(text, "-%u", low + 1 + random_below(random, 3));
	if (random_below(random, 3) == 0)
		random_add(text, ",%u", 5 + random_below(random, 4));
	random_add(text, "}");
}

static inline void random_number_test(struct random *random, struct random_text *text)
{
	static const char *const ordered[] = { "<", "<=", ">", ">=" };
	static const char *const equal[] = { "==", "!=", "=", "&" };
	const struct random_field *field = &random_fields[random_below(random, RANDOM_FIELDS)];
	unsigned int kind = random_below(random, 10);

	random_add(text, "%s ", field->name);
	if (kind < 3) {
		random_add(text, "%s ", ordered[random_below(random, 4)]);
		random_number(random, text, field);
	} else if (kind < 7) {
		random_add(text, "%s ", equal[random_below(random, 4)]);
		random_number_or_symbol(random, text, field);
	} else if (kind == 7) {
		random_add(text, "%s ",
			random_below(random, 2)   ? "&"
			: random_below(random, 2) ? "=="
						  : "!=");
		random_cpus(random, text);
	} else {
		random_add(text, "in {");
		for (unsigned int i = 0, count = 1 + random_below(random, 4); i < count; i++) {
			random_add(text, i ? ", " : "");
			if (random_below(random, 4) == 0)
				random_range(random, text, field);
			else
				random_number_or_symbol(random, text, field);
		}
		random_add(text, "}");
	}
}

/* ---- strings ---- */

static const char *const random_strings[] = { "", "sh", "bash", "bas", "ash", "x.sh", "1abc", "a*b",
	"it's", "say \"x\"", "/etc/passwd", "/etc", "fifteen_letters", "(fault)", "\xc3\xa9" };
static const char *const random_globs[] = { "*", "b*", "*sh", "*s*", "?h", "[a-f]*", "!b*", "*a*b*",
	"\\bash", "1*", "/etc/*", "*\\**", "[!b]*", "ba[rs]h", "sh", "", "a[*]b", "**", "?*",
	"!?h" };
static const char *const random_regexes[] = { "^b", "sh$", "a.*s", "^(sh|bash)$", "[0-9]", "^$",
	"e", "(a|b)+s", "^.h$" };

#define RANDOM_PICK(random, pool) (pool)[random_below(random, sizeof(pool) / sizeof((pool)[0]))]

static inline void random_quoted(struct random_text *text, const char *string)
{
	char quote = strchr(string, '"') ? '\'' : '"';

	random_add(text, "%c%s%c", quote, string, quote);
}

static inline void random_string_test(struct random *random, struct random_text *text)
{
	static const char *const fields[] = { "name", "path", "rel", "raw", "COMM", "cgroup", "exe" };
	static const char *const plain[] = { "==", "!=", "^=", "$=", "*=" };
	static const char *const globs[] = { "~", "!~", "=" };
	unsigned int kind = random_below(random, 9);

	random_add(text, "%s ", RANDOM_PICK(random, fields));
	if (kind < 4) {
		random_add(text, "%s ", RANDOM_PICK(random, plain));
		random_quoted(text, RANDOM_PICK(random, random_strings));
	} else if (kind < 6) {
		random_add(text, "%s ", RANDOM_PICK(random, globs));
		random_quoted(text, RANDOM_PICK(random, random_globs));
	} else if (kind == 6) {
		random_add(text, "=~ ");
		random_quoted(text, RANDOM_PICK(random, random_regexes));
	} else {
		random_add(text, "in {");
		for (unsigned int i = 0, count = 1 + random_below(random, 4); i < count; i++) {
			random_add(text, i ? ", " : "");
			random_quoted(text, RANDOM_PICK(random, random_strings));
		}
		random_add(text, "}");
	}
}

/* ---- filters ---- */

static inline void random_filter(
	struct random *random, struct random_text *text, unsigned int depth)
{
	unsigned int kind = random_below(random, 10);

	if (random_below(random, 6) == 0)
		random_add(text, "!");
	if (!depth || kind < 3) {
		if (random_below(random, 20) == 0) {
			random_add(text, "mask %s ",
				random_below(random, 2)   ? "&"
				: random_below(random, 2) ? "=="
							  : "!=");
			random_cpus(random, text);
		} else if (random_below(random, 2)) {
			random_number_test(random, text);
		} else {
			random_string_test(random, text);
		}
		return;
	}
	random_add(text, "(");
	for (unsigned int i = 0, count = 2 + random_below(random, 2); i < count; i++) {
		random_add(text, !i ? "" : kind < 7 ? " && " : " || ");
		random_filter(random, text, depth - 1);
	}
	random_add(text, ")");
}

/* ---- events ---- */

static inline void random_dynamic(
	struct random *random, struct samples *samples, struct sample *sample, const char *field)
{
	switch (random_below(random, 12)) {
	case 0:
		/* A word of 0. */
		return;
	case 1:
		/* What could not be read. */
		sample_bytes(samples, sample, field, "", 0);
		return;
	case 2:
		/* Without its NUL. */
		sample_bytes(samples, sample, field, "bash", 4);
		return;
	default:
		sample_text(samples, sample, field, RANDOM_PICK(random, random_strings));
	}
}

/* Replaces the sample's event by a random one. */
static inline void random_event(
	struct random *random, struct samples *samples, struct sample *sample)
{
	uint64_t mask = 1ULL << random_below(random, 9);
	const char *name = RANDOM_PICK(random, random_strings);

	memset(sample, 0, sizeof(*sample));
	sample->used = samples->schema->header->fixed_size;
	for (size_t i = 0; i < RANDOM_FIELDS; i++)
		if (schema_find(samples->schema, random_fields[i].name) >= 0)
			sample_number(samples, sample, random_fields[i].name,
				random_value(random, &random_fields[i]));
	sample_number(samples, sample, "common_type", 1000);
	memset(sample->payload + 40, 'h', random_below(random, 2) ? 16 : 0);
	memcpy(sample->payload + 40, name, strlen(name) + 1);
	random_dynamic(random, samples, sample, "path");
	random_dynamic(random, samples, sample, "rel");
	random_dynamic(random, samples, sample, "raw");
	mask |= 1ULL << random_below(random, 9);
	sample_bytes(samples, sample, "mask", &mask, sizeof(mask));
	sample->event = (struct filter_event){
		.payload = sample->payload,
		.size = sample->used,
		.facts = FILTER_TID | ((uint32_t)random_next(random) |
					      (random_below(random, 2) ? UINT32_MAX : 0)),
		.tgid = (int32_t)random_value(random, &(struct random_field){ "", 32, true }),
		.cpu = random_below(random, 9),
		.uid = (uint32_t)random_value(random, &(struct random_field){ "", 32, false }),
		.gid = (uint32_t)random_value(random, &(struct random_field){ "", 32, false }),
		.exe = RANDOM_PICK(random, random_strings),
		.comm = RANDOM_PICK(random, random_strings),
		.cgroup = RANDOM_PICK(random, random_strings),
	};
	/* Cut short now and then. */
	if (random_below(random, 20) == 0)
		sample->event.size = random_below(random, sample->used);
}

#endif
