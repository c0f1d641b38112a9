/* A second, slow evaluation of filters: straight from the syntax tree, in three values, with
 * nothing of the code under test but the parser and shm's reading of fields. For events of the sort
 * of filter_events.h. */
#ifndef TRACEFAN_TESTS_ROUTER_FILTER_REFERENCE_H
#define TRACEFAN_TESTS_ROUTER_FILTER_REFERENCE_H

#include "router/filter_ast.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum truth { REFERENCE_FALSE, REFERENCE_UNKNOWN, REFERENCE_TRUE };

struct reference {
	const struct filter_ast *ast;
	const struct schema *schema;
	const struct filter_event *event;
};

static inline void reference_copy(
	const struct reference *reference, struct ast_piece piece, char out[512])
{
	if (piece.size >= 512)
		abort();
	memcpy(out, reference->ast->text + piece.at, piece.size);
	out[piece.size] = '\0';
}

/* The number that a word stands for, in 128 bits; *ret_mask is what is compared of the field. */
static inline __int128 reference_value(const char *field, const char *text, uint64_t *ret_mask)
{
	static const struct {
		const char *field, *name;
		uint64_t value, mask;
	} symbols[] = {
		{ "vec", "HI", 0, -1ULL },
		{ "vec", "TIMER", 1, -1ULL },
		{ "vec", "NET_TX", 2, -1ULL },
		{ "vec", "NET_RX", 3, -1ULL },
		{ "vec", "RCU", 9, -1ULL },
		{ "gfp", "GFP_A", 1, -1ULL },
		{ "gfp", "GFP_B", 2, -1ULL },
		{ "gfp", "GFP_A|GFP_B", 3, -1ULL },
		{ "gfp", "GFP_HIGH", 0x30, -1ULL },
		{ "state", "S", 1, 0xff },
		{ "state", "D", 2, 0xff },
		{ "state", "S|D", 3, 0xff },
	};

	*ret_mask = -1ULL;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		if (!strcmp(symbols[i].field, field) && !strcmp(symbols[i].name, text)) {
			*ret_mask = symbols[i].mask;
			return symbols[i].value;
		}
	return *text == '-' ? -(__int128)strtoull(text + 1, NULL, 0)
			    : (__int128)strtoull(text, NULL, 0);
}

static inline bool reference_cpu_listed(const char *list, uint64_t cpu)
{
	while (*list) {
		char *end;
		unsigned long low = strtoul(list, &end, 10), high = low;

		if (*end == '-')
			high = strtoul(end + 1, &end, 10);
		if (cpu >= low && cpu <= high)
			return true;
		list = *end == ',' ? end + 1 : end;
	}
	return false;
}

static inline bool reference_cpu_single(const char *list)
{
	return !strchr(list, '-') && !strchr(list, ',');
}

/* ---- numbers ---- */

/* The field's value, its width and sign. Returns whether the event has it. */
static inline bool reference_number(const struct reference *reference, const char *name,
	__int128 *ret, unsigned int *ret_bits, bool *ret_signed)
{
	const struct filter_event *event = reference->event;
	int i = schema_find(reference->schema, !strcmp(name, "tid") ? "common_pid" : name);
	const struct schema_field *field = i < 0 ? NULL : &reference->schema->fields[i];
	uint64_t value = 0;
	uint32_t word;

	*ret_bits = field ? 8 * field->size : 32;
	*ret_signed = field ? field->flags & SCHEMA_SIGNED : strcmp(name, "uid") != 0 && strcmp(name, "gid") != 0;
	if (field && field->kind == SCHEMA_INTEGER) {
		if (schema_read_integer(
			    reference->schema, field, event->payload, event->size, &value))
			return false;
	} else if (field) {
		if (field->offset + 4 > event->size)
			return false;
		memcpy(&word, (const uint8_t *)event->payload + field->offset, sizeof(word));
		value = word;
	} else if (!strcmp(name, "CPU")) {
		if (!(event->facts & FILTER_CPU))
			return false;
		value = event->cpu;
	} else if (!strcmp(name, "pid")) {
		if (!(event->facts & FILTER_TGID))
			return false;
		value = (uint64_t)event->tgid;
	} else if (!strcmp(name, "gid")) {
		if (!(event->facts & FILTER_GID))
			return false;
		value = event->gid;
	} else {
		if (!(event->facts & FILTER_UID))
			return false;
		value = event->uid;
	}
	*ret = *ret_signed ? (__int128)(int64_t)value : (__int128)value;
	return true;
}

static inline bool reference_same(__int128 a, __int128 b, uint64_t mask, unsigned int bits)
{
	uint64_t width = bits == 64 ? -1ULL : (1ULL << bits) - 1;

	return !(((uint64_t)a ^ (uint64_t)b) & mask & width);
}

static inline bool reference_in_set(const struct reference *reference, const struct ast_node *test,
	const char *name, __int128 value, unsigned int bits)
{
	for (const struct ast_value *item = test->values; item; item = item->next) {
		char text[512], *dots;
		uint64_t mask;
		__int128 low;

		reference_copy(reference, item->piece, text);
		dots = strstr(text, "..");
		if (dots) {
			*dots = '\0';
			if (value >= reference_value(name, text, &mask) &&
				value <= reference_value(name, dots + 2, &mask))
				return true;
			continue;
		}
		low = reference_value(name, text, &mask);
		if (reference_same(value, low, mask, bits))
			return true;
	}
	return false;
}

static inline bool reference_cpus(const struct ast_node *test, const char *list, __int128 value)
{
	bool listed = value >= 0 && value <= 65535 && reference_cpu_listed(list, (uint64_t)value);

	if (test->op == AST_BAND)
		return listed;
	return (listed && reference_cpu_single(list)) != (test->op == AST_NE);
}

static inline enum truth reference_test_number(
	const struct reference *reference, const struct ast_node *test, const char *name)
{
	char text[512];
	__int128 value, other;
	unsigned int bits;
	uint64_t mask;
	bool is_signed, result;

	if (!reference_number(reference, name, &value, &bits, &is_signed))
		return REFERENCE_UNKNOWN;
	reference_copy(reference, test->values->piece, text);
	if (test->values->kind == AST_CPUS)
		return reference_cpus(test, text, value) ? REFERENCE_TRUE : REFERENCE_FALSE;
	other = reference_value(name, text, &mask);
	switch (test->op) {
	case AST_LT:
		result = value < other;
		break;
	case AST_LE:
		result = value <= other;
		break;
	case AST_GT:
		result = value > other;
		break;
	case AST_GE:
		result = value >= other;
		break;
	case AST_BAND:
		result = !reference_same(value & other, 0, -1ULL, bits);
		break;
	case AST_NE:
		result = !reference_same(value, other, mask, bits);
		break;
	default:
		result = reference_in_set(reference, test, name, value, bits);
		break;
	}
	return result ? REFERENCE_TRUE : REFERENCE_FALSE;
}

/* ---- strings ---- */

static inline bool reference_class(const char **glob, unsigned char c, bool *ret)
{
	const char *at = *glob + 1, *first;
	bool inverted = *at == '!', match = false;

	at += inverted;
	for (first = at; *at && (*at != ']' || at == first); at++) {
		unsigned char low = (unsigned char)*at, high = low;

		if (at[1] == '-' && at[2] && at[2] != ']') {
			high = (unsigned char)at[2];
			at += 2;
		}
		match |= low <= c && c <= high;
	}
	if (!*at)
		return false;
	*glob = at + 1;
	*ret = match != inverted;
	return true;
}

static inline bool reference_glob(const char *glob, const char *text)
{
	bool match;

	if (!*glob)
		return !*text;
	if (*glob == '*')
		return reference_glob(glob + 1, text) || (*text && reference_glob(glob, text + 1));
	if (*glob == '\\') {
		glob++;
		return *glob ? *text == *glob && reference_glob(glob + 1, text + 1) : !*text;
	}
	if (!*text)
		return false;
	if (*glob == '[' && reference_class(&glob, (unsigned char)*text, &match))
		return match && reference_glob(glob, text + 1);
	return (*glob == '?' || *glob == *text) && reference_glob(glob + 1, text + 1);
}

static inline bool reference_text(
	const struct reference *reference, const char *name, char out[512])
{
	const struct filter_event *event = reference->event;
	int i = schema_find(reference->schema, name);
	const char *from;
	const uint8_t *bytes;
	uint32_t word;
	size_t size;

	if (i >= 0) {
		if (schema_read_bytes(reference->schema, &reference->schema->fields[i],
			    event->payload, event->size, &bytes, &size))
			return false;
		memcpy(&word, (const uint8_t *)event->payload + reference->schema->fields[i].offset,
			sizeof(word));
		if (reference->schema->fields[i].place != SCHEMA_FIXED && !size && word &&
			!(word >> 16))
			return false;
		memcpy(out, bytes, size);
		out[size] = '\0';
		return true;
	}
	if (!(event->facts & (*name == 'C' ? FILTER_COMM : *name == 'e' ? FILTER_EXE : FILTER_CGROUP)))
		return false;
	from = *name == 'C' ? event->comm : *name == 'e' ? event->exe : event->cgroup;
	size = strnlen(from, *name == 'C' ? FILTER_COMM_SIZE : 511);
	memcpy(out, from, size);
	out[size] = '\0';
	return true;
}

static inline bool reference_regex(const char *pattern, const char *text)
{
	regex_t regex;
	bool match;

	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB))
		abort();
	match = !regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	return match;
}

static inline bool reference_like(const char *pattern, const char *text)
{
	return *pattern == '!' ? !reference_glob(pattern + 1, text) : reference_glob(pattern, text);
}

static inline enum truth reference_test_string(
	const struct reference *reference, const struct ast_node *test, const char *name)
{
	char text[512], value[512];
	bool result = false;
	size_t size, value_size;

	if (!reference_text(reference, name, text))
		return REFERENCE_UNKNOWN;
	reference_copy(reference, test->values->piece, value);
	size = strlen(text);
	value_size = strlen(value);
	switch (test->op) {
	case AST_GLOB:
	case AST_LIKE:
		result = reference_like(value, text);
		break;
	case AST_NOT_GLOB:
		result = !reference_like(value, text);
		break;
	case AST_PREFIX:
		result = !strncmp(text, value, value_size);
		break;
	case AST_SUFFIX:
		result = size >= value_size && !strcmp(text + size - value_size, value);
		break;
	case AST_SUBSTRING:
		result = strstr(text, value) != NULL;
		break;
	case AST_REGEX:
		result = reference_regex(value, text);
		break;
	default:
		for (const struct ast_value *item = test->values; item; item = item->next) {
			reference_copy(reference, item->piece, value);
			result |= !strcmp(text, value);
		}
		result = result != (test->op == AST_NE);
		break;
	}
	return result ? REFERENCE_TRUE : REFERENCE_FALSE;
}

static inline enum truth reference_test_mask(
	const struct reference *reference, const struct ast_node *test, const char *name)
{
	int i = schema_find(reference->schema, name);
	const uint8_t *bytes;
	char list[512];
	bool any = false, all = true;
	uint64_t bits = 0;
	size_t size;

	if (schema_read_bytes(reference->schema, &reference->schema->fields[i],
		    reference->event->payload, reference->event->size, &bytes, &size))
		return REFERENCE_UNKNOWN;
	memcpy(&bits, bytes, size < 8 ? size : 8);
	reference_copy(reference, test->values->piece, list);
	for (unsigned int cpu = 0; cpu < 128; cpu++) {
		bool set = cpu < 64 && (bits >> cpu & 1), listed = reference_cpu_listed(list, cpu);

		any |= set && listed;
		all &= set == listed;
	}
	if (test->op == AST_BAND)
		return any ? REFERENCE_TRUE : REFERENCE_FALSE;
	return all != (test->op == AST_NE) ? REFERENCE_TRUE : REFERENCE_FALSE;
}

static inline enum truth reference_test(
	const struct reference *reference, const struct ast_node *test)
{
	static const char *const strings[] = { "name", "path", "rel", "raw", "COMM", "cgroup", "exe" };
	char name[512];

	reference_copy(reference, test->field, name);
	if (!strcmp(name, "mask"))
		return reference_test_mask(reference, test, name);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		if (!strcmp(strings[i], name))
			return reference_test_string(reference, test, name);
	return reference_test_number(reference, test, name);
}

static inline enum truth reference_node(
	const struct reference *reference, const struct ast_node *node)
{
	enum truth truth = node->kind == AST_OR ? REFERENCE_FALSE : REFERENCE_TRUE;

	if (node->kind == AST_TEST)
		return reference_test(reference, node);
	if (node->kind == AST_NOT)
		return (enum truth)(REFERENCE_TRUE - reference_node(reference, node->first));
	for (const struct ast_node *child = node->first; child; child = child->next) {
		enum truth more = reference_node(reference, child);

		if (node->kind == AST_OR ? more > truth : more < truth)
			truth = more;
	}
	return truth;
}

/* Whether the filter accepts the event. */
static inline bool reference_match(
	const struct filter_ast *ast, const struct schema *schema, const struct filter_event *event)
{
	const struct reference reference = { ast, schema, event };

	return reference_node(&reference, ast->root) == REFERENCE_TRUE;
}

#endif
