#include "consumers/client/fetch.h"

#include "base/checked.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct packer {
	const struct probe_spec *spec;
	const struct fetch_context *context;
	struct control_create *create;
	struct fetch_places *places;
	struct probe_spec_error *error;
	const char *argument; /* the name of the one at hand */
	size_t used; /* of create->fetch */
};

__attribute__((format(printf, 3, 4))) static int fail(struct packer *p, int position, const char *format, ...)
{
	va_list ap;

	p->error->position = position;
	p->error->argument = position < 0 ? p->argument : NULL;
	va_start(ap, format);
	(void)vsnprintf(p->error->message, sizeof(p->error->message), format, ap);
	va_end(ap);
	return -EINVAL;
}

/* Arguments that a typed trace's table made stand nowhere in what the user wrote. */
static int position_of(int base, size_t i)
{
	return base < 0 ? -1 : base + (int)i;
}

static int append(struct packer *p, int position, const char *text, size_t size)
{
	if (size >= sizeof(p->create->fetch) - p->used)
		return fail(p, position, "the fetch arguments are longer than %zu bytes in all",
			sizeof(p->create->fetch) - 1);
	memcpy(p->create->fetch + p->used, text, size);
	p->used += size;
	return 0;
}

/* The register that holds a function's argument at its entry (System V AMD64, AAPCS64), by the kernel's name. */
static const char *register_of(const struct fetch_context *context, unsigned int n)
{
	static const char *const amd64[] = { "%di", "%si", "%dx", "%cx", "%r8", "%r9" };
	static const char *const aarch64[] = { "%x0", "%x1", "%x2", "%x3", "%x4", "%x5" };

	if (context->machine == EM_X86_64 && context->is_64)
		return amd64[n - 1];
	if (context->machine == EM_AARCH64)
		return aarch64[n - 1];
	return NULL;
}

static int append_usdt(struct packer *p, int position, unsigned int n)
{
	const struct usdt_args *args = p->context->usdt;

	if (n > args->count)
		return fail(p, position, "%s has %zu argument%s", p->spec->symbol, args->count,
			args->count == 1 ? "" : "s");
	if (args->rows[n - 1].reason)
		return fail(p, position, "$arg%u of %s can't be fetched: %s", n, p->spec->symbol,
			args->rows[n - 1].reason);
	return append(p, position, args->rows[n - 1].fetch, strlen(args->rows[n - 1].fetch));
}

/* One $argN of a user function. */
static int append_argument(struct packer *p, int position, unsigned int n)
{
	const char *name;

	if (p->context->kind == PROBE_USDT)
		return append_usdt(p, position, n);
	if (p->context->kind == PROBE_URETPROBE)
		return fail(p, position, "a function's arguments are gone when it returns; use $retval, or a uprobe");
	if (n < 1 || n > 6)
		return fail(p, position, "only $arg1 to $arg6 are in registers");
	name = register_of(p->context, n);
	if (!name)
		return fail(p, position, "$arg%u is known for 64-bit x86 and arm64 programs only; name a register", n);
	return append(p, position, name, strlen(name));
}

/* The length of "$argN" at `text`, 0 when it isn't one. */
static size_t argument_length(const char *text, unsigned int *ret)
{
	size_t i = 4;

	if (strncmp(text, "$arg", 4) != 0)
		return 0;
	*ret = 0;
	for (; text[i] >= '0' && text[i] <= '9' && i < 8; i++)
		*ret = 10 * *ret + (unsigned int)(text[i] - '0');
	return i > 4 && *ret > 0 ? i : 0;
}

/* FETCH with the user functions' arguments replaced. *ret_only is N when it is nothing but $argN. */
static int append_fetch(struct packer *p, const struct probe_spec_arg *arg, const char *fetch, unsigned int *ret_only,
	bool *ret_verbatim)
{
	bool translate = probe_spec_in_file(p->context->kind), quoted = false;
	size_t i = 0;

	while (fetch[i]) {
		int position = position_of(arg->fetch_position, i), rc;
		unsigned int n = 0;
		size_t length = translate && !quoted ? argument_length(fetch + i, &n) : 0;

		if (length > 0) {
			rc = append_argument(p, position, n);
			*ret_verbatim = false;
			if (i == 0 && fetch[length] == '\0')
				*ret_only = n;
		} else {
			length = 1;
			quoted ^= fetch[i] == '"';
			rc = append(p, position, fetch + i, 1);
		}
		if (rc)
			return rc;
		i += length;
	}
	return 0;
}

/* The type where none was given and the default, an unsigned long, would be wrong. */
static const char *default_type(const struct packer *p, const char *fetch, unsigned int only)
{
	if (only && p->context->kind == PROBE_USDT)
		return p->context->usdt->rows[only - 1].type;
	/* Kernels before 4.8 and 5.4 ask for the type of these. */
	if (strcmp(fetch, "$comm") == 0 || strncmp(fetch, "\\\"", 2) == 0)
		return "string";
	return "";
}

static void end_argument(struct packer *p, size_t begin, int position, size_t verbatim)
{
	size_t i = p->places->count;

	p->places->rows[i].packed = begin;
	p->places->rows[i].size = p->used - begin;
	p->places->rows[i].position = position;
	p->places->rows[i].verbatim = verbatim;
	p->places->count++;
	p->create->fetch_count++;
	/* Its NUL: append leaves room for one. */
	p->used++;
}

static int pack_argument(struct packer *p, size_t i)
{
	const struct probe_spec_arg *arg = &p->spec->args[i];
	const char *fetch = probe_spec_fetch(p->spec, i), *type = probe_spec_type(p->spec, i);
	size_t begin = p->used, given;
	bool verbatim = true;
	unsigned int only = 0;
	int rc;

	p->argument = arg->name;
	rc = append(p, arg->position, arg->name, strlen(arg->name));
	if (rc == 0)
		rc = append(p, arg->position, "=", 1);
	if (rc == 0)
		rc = append_fetch(p, arg, fetch, &only, &verbatim);
	if (rc)
		return rc;
	given = p->used - begin + (*type ? 1 + strlen(type) : 0);
	if (!*type)
		type = default_type(p, fetch, only);
	if (*type)
		rc = append(p, arg->position, ":", 1);
	if (rc == 0)
		rc = append(p, arg->position, type, strlen(type));
	if (rc == 0)
		end_argument(p, begin, arg->position, verbatim ? given : 0);
	return rc;
}

static int pack_usdt(struct packer *p)
{
	const struct usdt_args *args = p->context->usdt;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < args->count; i++) {
		const struct usdt_arg *arg = &args->rows[i];
		char text[sizeof(arg->fetch) + sizeof(arg->type) + 16];
		size_t begin = p->used;
		int n = snprintf(text, sizeof(text), "arg%zu=%s:%s", i + 1, arg->fetch, arg->type);

		if (arg->reason)
			continue;
		rc = append(p, -1, text, (size_t)n);
		if (rc == 0)
			end_argument(p, begin, -1, 0);
	}
	return rc;
}

int fetch_pack(const struct probe_spec *spec, const struct fetch_context *context, struct control_create *create,
	struct fetch_places *ret_places, struct probe_spec_error *ret_error)
{
	struct packer p = {
		.spec = spec, .context = context, .create = create, .places = ret_places, .error = ret_error,
	};
	int rc = 0;

	memset(create->fetch, 0, sizeof(create->fetch));
	create->fetch_count = 0;
	ret_places->count = 0;
	if (context->kind == PROBE_USDT && spec->arg_count == 0)
		return pack_usdt(&p);
	for (size_t i = 0; rc == 0 && i < spec->arg_count; i++)
		rc = pack_argument(&p, i);
	return rc;
}

static size_t find_row(const struct fetch_places *places, int packed)
{
	for (size_t i = 0; packed >= 0 && i < places->count; i++)
		if ((size_t)packed >= places->rows[i].packed &&
			(size_t)packed - places->rows[i].packed <= places->rows[i].size)
			return i;
	return SIZE_MAX;
}

const char *fetch_argument(const struct fetch_places *places, const struct control_create *create, int packed)
{
	size_t i = find_row(places, packed);

	return i == SIZE_MAX ? NULL : create->fetch + places->rows[i].packed;
}

int fetch_position(const struct fetch_places *places, int packed)
{
	size_t i = find_row(places, packed), at;

	if (i == SIZE_MAX || places->rows[i].position < 0)
		return -1;
	at = (size_t)packed - places->rows[i].packed;
	if (at > places->rows[i].verbatim)
		at = places->rows[i].verbatim;
	return places->rows[i].position + (int)at;
}
