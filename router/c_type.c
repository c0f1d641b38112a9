#include "router/c_type.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct base_type {
	const char *name;
	uint8_t size; /* 0: the target's long */
	bool is_signed;
} base_types[] = {
	{ "char", 1, true },      { "bool", 1, false },    { "_Bool", 1, false },   { "s8", 1, true },
	{ "u8", 1, false },       { "__s8", 1, true },     { "__u8", 1, false },    { "int8_t", 1, true },
	{ "uint8_t", 1, false },  { "short", 2, true },    { "s16", 2, true },      { "u16", 2, false },
	{ "__s16", 2, true },     { "__u16", 2, false },   { "int16_t", 2, true },  { "uint16_t", 2, false },
	{ "__le16", 2, false },   { "__be16", 2, false },  { "umode_t", 2, false }, { "int", 4, true },
	{ "s32", 4, true },       { "u32", 4, false },     { "__s32", 4, true },    { "__u32", 4, false },
	{ "int32_t", 4, true },   { "uint32_t", 4, false }, { "__le32", 4, false }, { "__be32", 4, false },
	{ "uint", 4, false },     { "pid_t", 4, true },    { "uid_t", 4, false },   { "gid_t", 4, false },
	{ "dev_t", 4, false },    { "nid_t", 4, false },   { "long long", 8, true }, { "s64", 8, true },
	{ "u64", 8, false },      { "__s64", 8, true },    { "__u64", 8, false },   { "int64_t", 8, true },
	{ "uint64_t", 8, false }, { "__le64", 8, false },  { "__be64", 8, false },  { "loff_t", 8, true },
	{ "ktime_t", 8, true },   { "long", 0, true },     { "ulong", 0, false },   { "size_t", 0, false },
	{ "ssize_t", 0, true },   { "off_t", 0, true },    { "cpumask_t", 0, false },
};

/* Takes `word` and the blanks behind it off the front. */
static bool take_word(const char **p, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*p, word, length) != 0 || !strchr(" [", (*p)[length]))
		return false;
	*p += length;
	while (**p == ' ')
		(*p)++;
	return true;
}

static void c_type_measure(struct c_type *type, unsigned int long_size)
{
	/* "unsigned" alone. */
	const char *base = *type->base ? type->base : "int";

	if (type->pointer) {
		type->element_size = long_size;
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(base_types); i++) {
		if (strcmp(base_types[i].name, base) != 0)
			continue;
		type->element_size = base_types[i].size ? base_types[i].size : long_size;
		type->is_signed = base_types[i].is_signed && !type->is_unsigned;
		return;
	}
}

void c_type_parse(const char *text, unsigned int long_size, struct c_type *ret)
{
	const char *p = text;
	size_t length;
	bool loose = false;

	*ret = (struct c_type){ .place = SCHEMA_FIXED };
	if (take_word(&p, "__data_loc"))
		ret->place = SCHEMA_DATA_LOC;
	else if (take_word(&p, "__rel_loc"))
		ret->place = SCHEMA_REL_LOC;
	/* The oldest form has no type behind it: a string. */
	if (ret->place != SCHEMA_FIXED && !*p)
		p = "char[]";

	do {
		loose = take_word(&p, "const") || take_word(&p, "volatile") || take_word(&p, "signed");
		if (take_word(&p, "unsigned"))
			loose = ret->is_unsigned = true;
		if (take_word(&p, "struct") || take_word(&p, "union"))
			loose = ret->aggregate = true;
	} while (loose);

	ret->dimensions = strchr(p, '[') ? strchr(p, '[') : "";
	length = strcspn(p, "[");
	/* "cpumask_t *[]" is a way of writing: the mask itself is in the event. */
	if (ret->place != SCHEMA_FIXED && !strncmp(p, "cpumask_t *", strlen("cpumask_t *")))
		length = strlen("cpumask_t");
	ret->pointer = memchr(p, '*', length);
	while (length && p[length - 1] == ' ')
		length--;
	(void)snprintf(ret->base, sizeof(ret->base), "%.*s", (int)length, p);
	c_type_measure(ret, long_size);
}

uint32_t c_type_element_size(const struct c_type *type, uint32_t size)
{
	char *end;
	unsigned long count;

	if (type->element_size && size % type->element_size == 0)
		return type->element_size;
	count = *type->dimensions ? strtoul(type->dimensions + 1, &end, 10) : 0;
	if (count && *end == ']' && size % count == 0 && is_power_of_two(size / count) && size / count <= 8)
		return (uint32_t)(size / count);
	return 1;
}
