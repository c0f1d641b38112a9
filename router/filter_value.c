#include "router/filter_value.h"

#include "base/digit.h"
#include "router/filter_symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The highest CPU number that a list may name: the kernel's own limit is 8192. */
#define CPU_MAX 65535

/* ---- plain numbers ---- */

struct magnitude {
	bool negative;
	bool decimal; /* a value; in another base it may be meant as bits */
	uint64_t value;
};

static bool looks_numeric(const char *text, size_t size)
{
	return size && ((*text >= '0' && *text <= '9') ||
			       (size > 1 && *text == '-' && text[1] >= '0' && text[1] <= '9'));
}

/* As the kernel's kstrtoull with base 0: 0x is hexadecimal, 0 octal. 0, -EINVAL or -ERANGE. */
static int parse_magnitude(const char *text, size_t size, struct magnitude *ret)
{
	struct magnitude result = { .negative = size && *text == '-' };
	size_t at = result.negative;
	unsigned int base = 10;

	if (size - at > 1 && text[at] == '0') {
		base = text[at + 1] == 'x' || text[at + 1] == 'X' ? 16 : 8;
		at += base == 16 ? 2 : 1;
	}
	result.decimal = base == 10;
	if (at == size)
		return -EINVAL;
	for (size_t i = at; i < size; i++)
		if (digit_value(text[i]) >= base)
			return -EINVAL;
	for (; at < size; at++)
		if (__builtin_mul_overflow(result.value, base, &result.value) ||
			__builtin_add_overflow(result.value, digit_value(text[at]), &result.value))
			return -ERANGE;
	*ret = result;
	return 0;
}

static uint64_t width_mask(const struct filter_field *field)
{
	return field->size >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * field->size) - 1;
}

static uint64_t extend(const struct filter_field *field, uint64_t value)
{
	unsigned int shift = 64 - 8 * field->size;

	return field->is_signed ? (uint64_t)((int64_t)(value << shift) >> shift)
				: value & width_mask(field);
}

static int fail_number(const struct filter_compiler *compiler, struct ast_piece piece)
{
	return filter_fail(compiler->failure, piece,
		"'%.*s' is no number (decimal, 0x hexadecimal, 0 octal)",
		filter_piece_length(piece), filter_piece_text(compiler, piece));
}

static int fail_range(const struct filter_compiler *compiler, const struct filter_field *field,
	struct ast_piece piece)
{
	uint64_t most = width_mask(field);

	if (field->is_signed)
		return filter_fail(compiler->failure, piece,
			"'%s' is signed and has %u bytes: from -%" PRIu64 " to %" PRIu64,
			field->name, field->size, (most >> 1) + 1, most >> 1);
	return filter_fail(compiler->failure, piece,
		"'%s' is unsigned and has %u bytes: from 0 to %" PRIu64, field->name, field->size,
		most);
}

/* `pattern`: hexadecimal and octal numbers that have the field's bits will do, whatever its sign. */
static int fit(const struct filter_compiler *compiler, const struct filter_field *field,
	struct ast_piece piece, bool pattern, uint64_t *ret)
{
	uint64_t most = width_mask(field), half = (most >> 1) + 1;
	struct magnitude magnitude;
	int error = parse_magnitude(filter_piece_text(compiler, piece), piece.size, &magnitude);

	if (error == -EINVAL)
		return fail_number(compiler, piece);
	if (error)
		return fail_range(compiler, field, piece);
	if (!field->is_signed && magnitude.negative && magnitude.value) {
		if (magnitude.value > half)
			return fail_range(compiler, field, piece);
		return filter_fail(compiler->failure, piece,
			"'%s' is unsigned in this event; the same bits as a number without sign: "
			"0x%" PRIx64,
			field->name, -magnitude.value & most);
	}
	if (!field->is_signed || magnitude.negative) {
		if (magnitude.value > (field->is_signed ? half : most))
			return fail_range(compiler, field, piece);
	} else if (magnitude.value >= half) {
		if (magnitude.value > most)
			return fail_range(compiler, field, piece);
		if (!pattern || magnitude.decimal)
			return filter_fail(compiler->failure, piece,
				"'%s' is signed: at most %" PRIu64 "%s; these bits are %" PRId64 " there",
				field->name, most >> 1, pattern ? ", or bits in hexadecimal" : "",
				(int64_t)extend(field, magnitude.value));
	}
	*ret = extend(field, magnitude.negative ? -magnitude.value : magnitude.value);
	return 0;
}

int filter_value_ordered(const struct filter_compiler *compiler, const struct filter_field *field,
	struct ast_piece piece, uint64_t *ret)
{
	return fit(compiler, field, piece, false, ret);
}

/* ---- symbols ---- */

struct symbol_search {
	const char *wanted;
	size_t size;
	struct filter_near near;
	struct filter_symbol found;
	bool any;      /* the field has symbols */
	bool unvalued; /* this is one, but nobody knows its value */
};

static bool compare_symbol(void *context, const struct filter_symbol *symbol)
{
	struct symbol_search *search = context;
	bool same =
		symbol->size == search->size && !memcmp(symbol->name, search->wanted, search->size);

	search->any = true;
	if (!symbol->valued) {
		search->unvalued |= same;
		return false;
	}
	filter_near_offer(&search->near, symbol->name, symbol->size);
	if (same)
		search->found = *symbol;
	return same;
}

static int fail_symbol(const struct filter_compiler *compiler, const struct filter_field *field,
	struct ast_piece piece, const struct symbol_search *search)
{
	const struct schema_field *row =
		field->schema ? &field->schema->fields[field->index] : NULL;

	if (search->unvalued)
		return filter_fail(compiler->failure, piece,
			"the event's format does not say which number '%.*s' is: compare with that",
			filter_piece_length(piece), filter_piece_text(compiler, piece));
	if (search->any) {
		(void)filter_fail(compiler->failure, piece, "'%s' is never printed as '%.*s'",
			field->name, filter_piece_length(piece),
			filter_piece_text(compiler, piece));
		filter_near_end(&search->near, compiler->failure);
		return -EINVAL;
	}
	if (row && (row->flags & SCHEMA_POINTER))
		return filter_fail(compiler->failure, piece,
			"'%s' holds an address, and the event has not what stands there",
			field->name);
	if (looks_numeric(filter_piece_text(compiler, piece), piece.size))
		return fail_number(compiler, piece);
	return filter_fail(compiler->failure, piece,
		"'%s' is a number, and no names of its values are known", field->name);
}

/* One name; 'x' for a field that is printed as a character, true and false for a bool. */
static int find_symbol(const struct filter_compiler *compiler, const struct filter_field *field,
	struct ast_piece piece, struct filter_symbol *ret)
{
	const struct schema *binary =
		compiler->environment->binary ? compiler->environment->binary : compiler->source;
	const char *format = schema_string(binary, binary->header->print_format);
	const char *text = filter_piece_text(compiler, piece);
	struct symbol_search search = { .wanted = text, .size = piece.size };
	uint8_t display =
		field->schema ? field->schema->fields[field->index].display : SCHEMA_DECIMAL;

	*ret = (struct filter_symbol){ .mask = UINT64_MAX };
	if (display == SCHEMA_CHAR && piece.size == 1) {
		ret->value = (unsigned char)*text;
		return 0;
	}
	if (display == SCHEMA_BOOL && piece.size == 4 && !memcmp(text, "true", 4)) {
		ret->value = 1;
		return 0;
	}
	if (display == SCHEMA_BOOL && piece.size == 5 && !memcmp(text, "false", 5))
		return 0;
	filter_near_begin(&search.near, text, piece.size);
	if (!filter_symbols_each(format, field->name, compare_symbol, &search))
		return fail_symbol(compiler, field, piece, &search);
	*ret = search.found;
	return 0;
}

/* The part of A|B|C that begins at *at, without the blanks around it; *at moves behind its bar. */
static struct ast_piece next_part(const char *text, struct ast_piece piece, uint32_t *at)
{
	uint32_t start = *at, end = start;

	while (end < piece.size && text[end] != '|')
		end++;
	*at = end + 1;
	while (start < end && text[start] == ' ')
		start++;
	while (end > start && text[end - 1] == ' ')
		end--;
	return (struct ast_piece){ piece.at + start, end - start };
}

static void use_symbol(const struct filter_field *field, const struct filter_symbol *symbol,
	struct filter_number *number)
{
	number->value = extend(field, number->value | symbol->value);
	number->mask |= symbol->mask & width_mask(field);
}

/* A|B|C, or a name that holds a bar itself. */
static int read_symbols(const struct filter_compiler *compiler, const struct filter_field *field,
	struct ast_piece piece, struct filter_number *ret)
{
	const char *text = filter_piece_text(compiler, piece);
	struct filter_failure failure = { .position = -1 };
	struct filter_compiler quiet = *compiler;
	struct filter_number number = { 0 };
	struct filter_symbol symbol;
	uint32_t at = 0;

	quiet.failure = &failure;
	if (!find_symbol(&quiet, field, piece, &symbol)) {
		use_symbol(field, &symbol, &number);
		at = piece.size + 1;
	}
	while (at <= piece.size) {
		int error = find_symbol(compiler, field, next_part(text, piece, &at), &symbol);

		if (error)
			return error;
		use_symbol(field, &symbol, &number);
	}
	*ret = number;
	return 0;
}

int filter_value_number(const struct filter_compiler *compiler, const struct filter_field *field,
	const struct ast_value *value, struct filter_number *ret)
{
	const char *text = filter_piece_text(compiler, value->piece);
	struct magnitude unused;

	/* A name may begin with a digit. */
	if (value->kind == AST_WORD &&
		parse_magnitude(text, value->piece.size, &unused) != -EINVAL) {
		ret->mask = width_mask(field);
		return fit(compiler, field, value->piece, true, &ret->value);
	}
	return read_symbols(compiler, field, value->piece, ret);
}

/* ---- ranges, CPUs, functions ---- */

static const char *find_dots(const struct filter_compiler *compiler, const struct ast_value *value)
{
	return memmem(filter_piece_text(compiler, value->piece), value->piece.size, "..", 2);
}

bool filter_value_is_range(const struct filter_compiler *compiler, const struct ast_value *value)
{
	return value->kind == AST_WORD && find_dots(compiler, value);
}

bool filter_value_is_numeric(const struct filter_compiler *compiler, const struct ast_value *value)
{
	const char *text = filter_piece_text(compiler, value->piece);
	size_t size = value->piece.size, low = size;
	struct magnitude unused;

	if (value->kind != AST_WORD)
		return false;
	if (find_dots(compiler, value))
		low = (size_t)(find_dots(compiler, value) - text);
	return parse_magnitude(text, low, &unused) != -EINVAL &&
	       (low == size || parse_magnitude(text + low + 2, size - low - 2, &unused) != -EINVAL);
}

int filter_value_range(const struct filter_compiler *compiler, const struct filter_field *field,
	const struct ast_value *value, struct filter_range *ret)
{
	uint32_t size =
		(uint32_t)(find_dots(compiler, value) - filter_piece_text(compiler, value->piece));
	struct ast_piece low = { value->piece.at, size };
	struct ast_piece high = { value->piece.at + size + 2, value->piece.size - size - 2 };
	uint64_t from = 0, to = 0;
	int error = filter_value_ordered(compiler, field, low, &from);

	if (!error)
		error = filter_value_ordered(compiler, field, high, &to);
	if (error)
		return error;
	*ret = (struct filter_range){ filter_field_key(field, from), filter_field_key(field, to) };
	if (ret->low > ret->high)
		return filter_fail(
			compiler->failure, value->piece, "this range ends before it begins");
	return 0;
}

static bool read_cpu(const char **at, const char *end, uint32_t *ret)
{
	uint32_t value = 0;
	const char *start = *at;

	while (*at < end && **at >= '0' && **at <= '9' && value <= CPU_MAX)
		value = 10 * value + (uint32_t)(*(*at)++ - '0');
	*ret = value;
	return *at > start && value <= CPU_MAX;
}

static bool take_char(const char **at, const char *end, char c)
{
	if (*at == end || **at != c)
		return false;
	(*at)++;
	return true;
}

/* A bit for each: a list may name the same ones again and again. */
struct cpus {
	uint64_t words[(CPU_MAX + 1) / 64];
};

static bool has_cpu(const struct cpus *cpus, uint32_t cpu)
{
	return cpus->words[cpu / 64] >> (cpu % 64) & 1;
}

static void add_cpus(struct cpus *cpus, uint32_t low, uint32_t high)
{
	for (uint32_t cpu = low; cpu <= high; cpu++)
		cpus->words[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

/* Where a range of them begins. */
static bool begins_at(const struct cpus *cpus, uint32_t cpu)
{
	return has_cpu(cpus, cpu) && !(cpu && has_cpu(cpus, cpu - 1));
}

static int make_ranges(const struct cpus *cpus, struct filter_ranges *ret)
{
	struct filter_ranges ranges = { 0 };
	size_t count = 0;

	for (uint32_t cpu = 0; cpu <= CPU_MAX; cpu++)
		count += begins_at(cpus, cpu);
	ranges.at = calloc(count ? count : 1, sizeof(*ranges.at));
	if (!ranges.at)
		return -ENOMEM;
	for (uint32_t cpu = 0; cpu <= CPU_MAX; cpu++) {
		if (begins_at(cpus, cpu))
			ranges.at[ranges.count++].low = cpu;
		if (has_cpu(cpus, cpu))
			ranges.at[ranges.count - 1].high = cpu;
	}
	*ret = ranges;
	return 0;
}

/* One of the list's elements: N, N-M, N-M:USED/GROUP or `all`. Returns 0 or -EINVAL. */
static int read_cpus(const char **at, const char *end, struct cpus *cpus)
{
	uint32_t low, high, used, group;

	if (end - *at >= 3 && !memcmp(*at, "all", 3)) {
		*at += 3;
		add_cpus(cpus, 0, CPU_MAX);
		return 0;
	}
	if (!read_cpu(at, end, &low))
		return -EINVAL;
	high = low;
	if (take_char(at, end, '-') && (!read_cpu(at, end, &high) || high < low))
		return -EINVAL;
	if (!take_char(at, end, ':')) {
		add_cpus(cpus, low, high);
		return 0;
	}
	if (!read_cpu(at, end, &used) || !take_char(at, end, '/') || !read_cpu(at, end, &group) ||
		!used || used > group)
		return -EINVAL;
	for (; low <= high; low += group)
		add_cpus(cpus, low, low + used - 1 < high ? low + used - 1 : high);
	return 0;
}

int filter_value_cpus(
	const struct filter_compiler *compiler, struct ast_piece piece, struct filter_ranges *ret)
{
	const char *text = filter_piece_text(compiler, piece), *at = text, *end = text + piece.size;
	struct cpus cpus = { 0 };
	bool any = false;
	int error = 0;

	while (at < end && !error) {
		if (*at == ' ' || *at == '\t' || *at == ',') {
			at++;
			continue;
		}
		any = true;
		error = read_cpus(&at, end, &cpus);
		if (!error && at < end && *at != ',' && *at != ' ' && *at != '\t')
			error = -EINVAL;
	}
	if (error || !any)
		return filter_fail(compiler->failure,
			(struct ast_piece){ piece.at + (uint32_t)(at - text), 1 },
			"a list of CPUs looks like 0-2,5");
	return make_ranges(&cpus, ret);
}

/* The two ends of LOW..HIGH. */
static int read_addresses(
	const struct filter_compiler *compiler, const struct ast_value *value, struct filter_range *ret)
{
	const char *text = filter_piece_text(compiler, value->piece), *dots = find_dots(compiler, value);
	struct magnitude low = { 0 }, high = { 0 };

	if (!dots || parse_magnitude(text, (size_t)(dots - text), &low) ||
		parse_magnitude(dots + 2, value->piece.size - (size_t)(dots + 2 - text), &high) ||
		low.negative || high.negative || low.value > high.value)
		return filter_fail(compiler->failure, value->piece,
			"the addresses of a function are expected here: LOW..HIGH");
	*ret = (struct filter_range){ low.value, high.value };
	return 0;
}

int filter_value_function(
	const struct filter_compiler *compiler, struct ast_piece piece, struct filter_range *ret)
{
	const char *text = filter_piece_text(compiler, piece);

	for (const struct ast_place *place = compiler->ast->places; place; place = place->next) {
		if (place->name.piece.size == piece.size &&
			!memcmp(filter_piece_text(compiler, place->name.piece), text, piece.size))
			return read_addresses(compiler, &place->addresses, ret);
	}
	return filter_fail(compiler->failure, piece,
		"where the function '%.*s' of the traced kernel lies is not known here: compare with "
		"addresses, in {START..END}",
		filter_piece_length(piece), text);
}
