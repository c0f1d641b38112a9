#include "consumers/client/usdt_arg.h"

#include "base/checked.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPERAND_MAX 256
#define SYMBOL_MAX  192

static const char reason_shape[] = "its operand has a form that the kernel can't fetch";
static const char reason_float[] = "it is a floating-point or vector register";
static const char reason_size[] = "its size is not 1, 2, 4 or 8 bytes";
static const char reason_index[] = "its address is computed with an index register";
static const char reason_segment[] = "it is thread-local";
static const char reason_symbol[] = "its symbol is not in the file's symbol table";
static const char reason_machine[] = "operands are known for x86-64 and arm64 only";

struct operand {
	const char *at; /* what is still to be read */
	usdt_symbol_fn symbol;
	void *context;
	struct usdt_arg *arg;
};

static const char *no(struct operand *o, const char *reason)
{
	o->arg->reason = reason;
	return reason;
}

static bool take(struct operand *o, char c)
{
	if (*o->at != c)
		return false;
	o->at++;
	return true;
}

/* A signed number in any of C's bases; false when there is none here. */
static bool take_number(struct operand *o, long long *ret)
{
	const char *digits = o->at + (*o->at == '-' || *o->at == '+');
	char *end;

	if (*digits < '0' || *digits > '9')
		return false;
	errno = 0;
	*ret = strtoll(o->at, &end, 0);
	if (errno)
		return false;
	o->at = end;
	return true;
}

static size_t name_length(const char *text)
{
	size_t i = 0;

	while ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
		(text[i] >= '0' && text[i] <= '9') || text[i] == '_')
		i++;
	return i;
}

/* ---- x86-64 ---- */

/* The kernel's name of a register that the operand calls by any of its widths. */
static const char *x86_register(const char *name, size_t size)
{
	static const char *const rows[][5] = {
		{ "ax", "rax", "eax", "ax", "al" }, { "bx", "rbx", "ebx", "bx", "bl" },
		{ "cx", "rcx", "ecx", "cx", "cl" }, { "dx", "rdx", "edx", "dx", "dl" },
		{ "si", "rsi", "esi", "si", "sil" }, { "di", "rdi", "edi", "di", "dil" },
		{ "bp", "rbp", "ebp", "bp", "bpl" }, { "sp", "rsp", "esp", "sp", "spl" },
		{ "r8", "r8", "r8d", "r8w", "r8b" }, { "r9", "r9", "r9d", "r9w", "r9b" },
		{ "r10", "r10", "r10d", "r10w", "r10b" }, { "r11", "r11", "r11d", "r11w", "r11b" },
		{ "r12", "r12", "r12d", "r12w", "r12b" }, { "r13", "r13", "r13d", "r13w", "r13b" },
		{ "r14", "r14", "r14d", "r14w", "r14b" }, { "r15", "r15", "r15d", "r15w", "r15b" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t j = 1; j < 5; j++)
			if (strlen(rows[i][j]) == size && memcmp(rows[i][j], name, size) == 0)
				return rows[i][0];
	return NULL;
}

/* A register behind its '%', or NULL with the reason. */
static const char *x86_take_register(struct operand *o)
{
	size_t size = name_length(o->at);
	const char *name = x86_register(o->at, size);

	if (name)
		o->at += size;
	else if (*o->at == 'x' || *o->at == 'y' || *o->at == 'z')
		(void)no(o, reason_float);
	else
		(void)no(o, size == 2 && o->at[1] == 's' ? reason_segment : reason_shape);
	return name;
}

/* What stands before the parenthesis: a symbol, a number, or both. */
static bool x86_take_displacement(struct operand *o, char *symbol, long long *ret)
{
	size_t size = 0;

	*ret = 0;
	symbol[0] = '\0';
	if (!(*o->at >= '0' && *o->at <= '9') && *o->at != '-' && *o->at != '(') {
		while (o->at[size] && !strchr("+-(", o->at[size]))
			size++;
		if (size == 0 || size >= SYMBOL_MAX)
			return false;
		memcpy(symbol, o->at, size);
		symbol[size] = '\0';
		o->at += size;
	}
	return *o->at == '(' || *o->at == '\0' || take_number(o, ret);
}

/* symbol+displacement(%rip): a place in the same file, as far from the probe wherever it is mapped. The kernel's own "@+N"
 * would do, but that older kernels add N twice. */
static const char *x86_global(struct operand *o, const char *symbol, long long displacement)
{
	int64_t distance;

	if (symbol[0] == '\0')
		return no(o, reason_shape);
	if (!o->symbol || o->symbol(o->context, symbol, &distance) < 0)
		return no(o, reason_symbol);
	(void)snprintf(o->arg->fetch, sizeof(o->arg->fetch), "%+" PRId64 "(%%ip)", (int64_t)((uint64_t)distance + (uint64_t)displacement));
	return NULL;
}

static const char *x86_memory(struct operand *o)
{
	char symbol[SYMBOL_MAX];
	long long displacement;
	const char *base;

	if (!x86_take_displacement(o, symbol, &displacement))
		return no(o, reason_shape);
	if (*o->at == '\0')
		return x86_global(o, symbol, displacement);
	if (!take(o, '('))
		return no(o, reason_shape);
	if (strcmp(o->at, "%rip)") == 0) {
		o->at += strlen(o->at);
		return x86_global(o, symbol, displacement);
	}
	if (symbol[0] || !take(o, '%'))
		return no(o, reason_index);
	base = x86_take_register(o);
	if (!base)
		return o->arg->reason;
	if (!take(o, ')'))
		return no(o, reason_index);
	(void)snprintf(o->arg->fetch, sizeof(o->arg->fetch), "%+lld(%%%s)", displacement, base);
	return NULL;
}

static const char *x86_operand(struct operand *o)
{
	const char *name;
	long long value;

	if (take(o, '$')) {
		if (!take_number(o, &value))
			return no(o, reason_shape);
		(void)snprintf(o->arg->fetch, sizeof(o->arg->fetch), "\\%lld", value);
		return NULL;
	}
	if (!take(o, '%'))
		return x86_memory(o);
	name = x86_take_register(o);
	if (!name)
		return o->arg->reason;
	if (*o->at == ':')
		return no(o, reason_segment);
	(void)snprintf(o->arg->fetch, sizeof(o->arg->fetch), "%%%s", name);
	return NULL;
}

/* ---- arm64 ---- */

/* x0..x30, w0..w30, sp by the kernel's name; false with the reason. */
static bool arm64_take_register(struct operand *o, char *out, size_t size)
{
	size_t length = name_length(o->at);
	unsigned int n = 0;

	if (length == 2 && memcmp(o->at, "sp", 2) == 0) {
		(void)snprintf(out, size, "sp");
		o->at += length;
		return true;
	}
	if (length < 2 || length > 3 || (*o->at != 'x' && *o->at != 'w')) {
		(void)no(o, *o->at && strchr("bhsdqv", *o->at) ? reason_float : reason_shape);
		return false;
	}
	for (size_t i = 1; i < length; i++) {
		if (o->at[i] < '0' || o->at[i] > '9') {
			(void)no(o, reason_shape);
			return false;
		}
		n = 10 * n + (unsigned int)(o->at[i] - '0');
	}
	if (n > 30) {
		(void)no(o, reason_shape);
		return false;
	}
	(void)snprintf(out, size, n == 30 ? "lr" : "x%u", n);
	o->at += length;
	return true;
}

static void skip_blanks(struct operand *o)
{
	while (*o->at == ' ')
		o->at++;
}

static const char *arm64_operand(struct operand *o)
{
	long long value = 0;
	char name[8];

	if (take_number(o, &value)) {
		(void)snprintf(o->arg->fetch, sizeof(o->arg->fetch), "\\%lld", value);
		return NULL;
	}
	if (!take(o, '[')) {
		if (!arm64_take_register(o, name, sizeof(name)))
			return o->arg->reason;
		(void)snprintf(o->arg->fetch, sizeof(o->arg->fetch), "%%%s", name);
		return NULL;
	}
	if (!arm64_take_register(o, name, sizeof(name)))
		return o->arg->reason;
	skip_blanks(o);
	if (take(o, ',')) {
		skip_blanks(o);
		(void)take(o, '#');
		if (!take_number(o, &value))
			return no(o, reason_index);
	}
	if (!take(o, ']'))
		return no(o, reason_shape);
	(void)snprintf(o->arg->fetch, sizeof(o->arg->fetch), "%+lld(%%%s)", value, name);
	return NULL;
}

/* ---- both ---- */

/* "N@": the argument's size, negative for a signed one; absent in notes of old tools. */
static const char *take_size(struct operand *o)
{
	const char *at = strchr(o->at, '@');
	long long size = 8;

	if (at) {
		if (!take_number(o, &size))
			return no(o, reason_shape);
		if (*o->at == 'f')
			return no(o, reason_float);
		if (o->at != at)
			return no(o, reason_shape);
		o->at++;
	}
	if (size != 1 && size != 2 && size != 4 && size != 8 && size != -1 && size != -2 && size != -4 && size != -8)
		return no(o, reason_size);
	(void)snprintf(o->arg->type, sizeof(o->arg->type), "%c%d", size < 0 ? 's' : 'u',
		(int)(size < 0 ? -size : size) * 8);
	return NULL;
}

static void parse_operand(struct operand *o, unsigned int machine)
{
	const char *reason = take_size(o);

	if (reason)
		return;
	if (machine == EM_X86_64)
		reason = x86_operand(o);
	else if (machine == EM_AARCH64)
		reason = arm64_operand(o);
	else
		reason = no(o, reason_machine);
	if (!reason && *o->at != '\0')
		(void)no(o, reason_shape);
}

/* The length of the next operand: up to a blank that is not inside brackets. */
static size_t operand_length(const char *text)
{
	size_t i = 0;
	int depth = 0;

	for (; text[i] && (depth > 0 || text[i] != ' '); i++) {
		if (text[i] == '[' || text[i] == '(')
			depth++;
		else if (text[i] == ']' || text[i] == ')')
			depth--;
	}
	return i;
}

void usdt_args_parse(const char *text, unsigned int machine, usdt_symbol_fn symbol, void *context,
	struct usdt_args *ret)
{
	char copy[OPERAND_MAX];

	memset(ret, 0, sizeof(*ret));
	for (;;) {
		struct operand o = { .at = copy, .symbol = symbol, .context = context };
		size_t size;

		text += strspn(text, " ");
		size = operand_length(text);
		if (size == 0 || ret->count == USDT_ARGS_MAX)
			return;
		o.arg = &ret->rows[ret->count++];
		if (size < sizeof(copy)) {
			memcpy(copy, text, size);
			copy[size] = '\0';
			parse_operand(&o, machine);
		} else {
			o.arg->reason = reason_shape;
		}
		text += size;
	}
}
