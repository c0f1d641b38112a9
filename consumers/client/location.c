#include "consumers/client/location.h"

#include "consumers/client/connection.h"
#include "consumers/client/elf.h"
#include "consumers/client/fetch.h"
#include "consumers/client/functions.h"
#include "consumers/client/kernel_symbols.h"
#include "consumers/client/near.h"
#include "consumers/client/probe_spec.h"
#include "consumers/client/usdt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many calls may be under way in a function of the kernel, where nobody says. The kernel's own choice is ten, or two for
 * each CPU, which a few threads that wait in accept(2) use up. A hundred bytes each. */
#define RETURNS_USUAL 512

struct location {
	struct probe_spec spec;
	struct elf_file file; /* uprobes and static probes */
	uint64_t offset;      /* uprobes: in the file */
	struct usdt_site *sites; /* static probes; owned */
	size_t site_count;
	struct fetch_places places; /* of the last request */
};

const char *location_name(const struct location *location)
{
	return location->spec.name;
}

size_t location_count(const struct location *location)
{
	return location->spec.kind == PROBE_USDT ? location->site_count : 1;
}

int location_fd(const struct location *location)
{
	return location->file.fd;
}

void location_free(struct location *location)
{
	if (!location)
		return;
	elf_file_release(&location->file);
	free(location->sites);
	free(location);
}

/* Says where in the user's text the thing stands that the failure is about. */
static int at(struct tfan *tfan, int rc, int position)
{
	if (rc && tfan->failure.public.position < 0)
		tfan->failure.public.position = position;
	return rc;
}

/* Go moves its stacks while a return address on them is the kernel's trampoline, and then crashes. */
static int check_go(struct tfan *tfan, const struct location *location)
{
	if (location->spec.kind != PROBE_URETPROBE || !location->file.is_go)
		return 0;
	if (!tfan->force)
		return failure_set(&tfan->failure, TFAN_LOCATION, EPERM, location->spec.place_position,
			"%s is a Go program, which a return probe can crash: probe the place of the return "
			"instead (uprobe:PATH:SYMBOL+OFFSET), or force it", location->file.path);
	connection_note(tfan, TFAN_NOTE_WARNING, "%s is a Go program: a return probe can crash it",
		location->file.path);
	return 0;
}

/* The trace's events all have the same fields, so what one place can't fetch no place does. */
static void agree_on_arguments(struct location *location)
{
	struct usdt_args *first = &location->sites[0].args;

	for (size_t i = 1; i < location->site_count; i++) {
		struct usdt_args *args = &location->sites[i].args;

		if (args->count < first->count)
			first->count = args->count;
		for (size_t j = 0; j < first->count; j++)
			if (!first->rows[j].reason)
				first->rows[j].reason = args->rows[j].reason;
	}
	for (size_t i = 1; i < location->site_count; i++) {
		struct usdt_args *args = &location->sites[i].args;

		args->count = first->count;
		for (size_t j = 0; j < first->count; j++)
			args->rows[j].reason = first->rows[j].reason;
	}
}

/* A breakpoint inside an instruction makes the program do something else. */
static int check_boundary(struct tfan *tfan, const struct location *location)
{
	bool at_entry = location->spec.kind == PROBE_URETPROBE;
	int rc = elf_file_check_boundary(&location->file, location->offset, at_entry, &tfan->failure);

	if (rc == 0 || !tfan->force)
		return rc;
	connection_note(tfan, TFAN_NOTE_WARNING, "%s", tfan->failure.text);
	return 0;
}

static int resolve_in_file(struct tfan *tfan, struct location *location)
{
	const struct probe_spec *spec = &location->spec;
	int rc = elf_file_open(spec->path, &location->file, &tfan->failure);

	if (rc)
		return at(tfan, rc, spec->place_position);
	rc = check_go(tfan, location);
	if (rc)
		return rc;
	if (spec->kind == PROBE_USDT) {
		rc = usdt_find(&location->file, spec->system, spec->event, &location->sites, &location->site_count,
			&tfan->failure);
		if (rc == 0)
			agree_on_arguments(location);
	} else if (spec->by_offset) {
		location->offset = spec->offset;
		rc = elf_file_check_offset(&location->file, spec->offset, &tfan->failure);
	} else {
		rc = elf_file_symbol(&location->file, spec->symbol, spec->offset, &location->offset, &tfan->failure);
	}
	if (rc == 0 && spec->kind != PROBE_USDT && spec->offset > 0)
		rc = check_boundary(tfan, location);
	return at(tfan, rc, spec->symbol_position);
}

static bool is_kernel_place(const struct probe_spec *spec)
{
	return spec->kind == PROBE_KPROBE || spec->kind == PROBE_KRETPROBE;
}

/* Older kernels take the first of several functions of one name, which is as likely as not another than the one that is
 * meant; newer ones refuse, and don't say which there are. */
static int check_unique(struct tfan *tfan, const struct location *location)
{
	const char *symbol = location->spec.symbol;
	struct kernel_symbols symbols;
	size_t inside;
	int rc;

	kernel_symbols_find(&symbols, symbol, false);
	if (symbols.count < 2)
		return 0;
	inside = symbols.count - symbols.module_count;
	rc = failure_set(&tfan->failure, TFAN_LOCATION, ENOTUNIQ, location->spec.symbol_position,
		"the kernel has %zu functions named \"%s\"", symbols.count, symbols.name);
	if (!symbols.module_count || symbols.module[0]) {
		failure_append(&tfan->failure, ", and can't tell them apart");
		return rc;
	}
	failure_append(&tfan->failure, inside ? ", %zu of them in no module; the others:" : "; say which:", inside);
	for (size_t i = 0; i < symbols.module_count && i < KERNEL_SYMBOLS_MODULES; i++)
		failure_append(&tfan->failure, " %s:%s", symbols.modules[i], symbols.name);
	return rc;
}

/* What a typed trace's table adds to the place's own arguments, and its condition, stand nowhere in the user's text. */
static int add_plan(struct tfan *tfan, struct location *location, const struct shape_plan *plan)
{
	struct probe_spec *spec = &location->spec;
	struct probe_spec_error error;
	size_t own = spec->arg_count;

	if (spec->filter[0])
		return failure_set(&tfan->failure, TFAN_USAGE, EINVAL, -1,
			"a typed trace's place has no filter of its own: the table has the conditions");
	if (probe_spec_add_arguments(plan->arguments, spec, &error) < 0)
		return failure_set(&tfan->failure, TFAN_FETCH_ARG, EINVAL, -1, "%s, in the table's \"%s\"",
			error.message, plan->arguments + error.position);
	for (size_t i = own; i < spec->arg_count; i++) {
		spec->args[i].position = -1;
		spec->args[i].fetch_position = -1;
	}
	spec->filter_position = -1;
	if (control_text(spec->filter, sizeof(spec->filter), plan->condition) < 0)
		return failure_set(&tfan->failure, TFAN_USAGE, ENAMETOOLONG, -1,
			"the table's conditions are longer than %zu bytes", sizeof(spec->filter) - 1);
	return 0;
}

static int parse(struct tfan *tfan, struct location *location, const char *probe, const struct shape_plan *plan)
{
	struct probe_spec_error error;

	if (probe_spec_parse(probe, &location->spec, &error) < 0)
		return failure_set(&tfan->failure, TFAN_USAGE, EINVAL, error.position, "%s", error.message);
	return plan ? add_plan(tfan, location, plan) : 0;
}

int location_find(struct tfan *tfan, const char *probe, const struct shape_plan *plan, struct location **ret)
{
	struct location *location = calloc(1, sizeof(*location));
	int rc;

	if (!location)
		return failure_set(&tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	location->file = (struct elf_file)ELF_FILE_NONE;
	rc = parse(tfan, location, probe, plan);
	if (rc == 0 && probe_spec_in_file(location->spec.kind))
		rc = resolve_in_file(tfan, location);
	/* What was recorded is known by its name alone. */
	if (rc == 0 && is_kernel_place(&location->spec) && !tfan->session.is_recorded)
		rc = check_unique(tfan, location);
	if (rc) {
		location_free(location);
		return rc;
	}
	*ret = location;
	return 0;
}

/* The file's name is for messages alone: of a long one, the end says more. */
static void shown_path(char *out, size_t size, const char *path)
{
	size_t length = strlen(path);

	if (length < size)
		memcpy(out, path, length + 1);
	else
		(void)snprintf(out, size, "...%s", path + length - (size - 4));
}

static void note_left_out(struct tfan *tfan, const struct location *location, const struct usdt_args *args)
{
	for (size_t i = 0; i < args->count; i++)
		if (args->rows[i].reason)
			connection_note(tfan, TFAN_NOTE_NOTE, "argument %zu of %s is left out: %s", i + 1,
				location->spec.symbol, args->rows[i].reason);
}

int location_request(struct tfan *tfan, struct location *location, size_t i, struct control_create *ret)
{
	const struct probe_spec *spec = &location->spec;
	const struct usdt_site *site = spec->kind == PROBE_USDT ? &location->sites[i] : NULL;
	struct fetch_context context = {
		.kind = spec->kind,
		.machine = location->file.machine,
		.is_64 = location->file.is_64,
		.usdt = site ? &site->args : NULL,
	};
	struct probe_spec_error error;

	memset(ret, 0, sizeof(*ret));
	if (fetch_pack(spec, &context, ret, &location->places, &error) < 0)
		return failure_set(&tfan->failure, TFAN_FETCH_ARG, EINVAL, error.position, "%s%s%s%s", error.message,
			error.argument ? " (argument \"" : "", error.argument ? error.argument : "",
			error.argument ? "\")" : "");
	ret->kind = spec->kind;
	ret->flags = (spec->stack ? CREATE_KERNEL_STACK : 0) | (spec->ustack ? CREATE_USER_STACK : 0);
	ret->offset = site ? site->offset : probe_spec_in_file(spec->kind) ? location->offset : spec->offset;
	ret->ref_offset = site ? site->ref_offset : 0;
	ret->maxactive = spec->kind == PROBE_KRETPROBE && !spec->maxactive ? RETURNS_USUAL : spec->maxactive;
	if (spec->kind == PROBE_TRACEPOINT || spec->kind == PROBE_EVENT) {
		memcpy(ret->system, spec->system, sizeof(ret->system));
		memcpy(ret->event, spec->event, sizeof(ret->event));
	}
	memcpy(ret->symbol, spec->symbol, sizeof(ret->symbol));
	shown_path(ret->path, sizeof(ret->path), location->file.path);
	memcpy(ret->filter, spec->filter, sizeof(ret->filter));
	if (site && spec->arg_count == 0 && i == 0)
		note_left_out(tfan, location, &site->args);
	return 0;
}

static void offer_lines(struct near *near, const char *list)
{
	char line[NEAR_NAME_MAX];

	while (*list) {
		size_t length = strcspn(list, "\n"), size = strcspn(list, " \n");

		if (size < sizeof(line)) {
			memcpy(line, list, size);
			line[size] = '\0';
			near_offer(near, line);
		}
		list += length + (list[length] == '\n');
	}
}

/* The list has a line SYSTEM:EVENT each. */
static bool has_system(const char *list, const char *system)
{
	const size_t size = strlen(system);

	while (*list) {
		if (strncmp(list, system, size) == 0 && list[size] == ':')
			return true;
		list += strcspn(list, "\n");
		list += *list == '\n';
	}
	return false;
}

static void offer_systems(struct near *near, const char *list, const char *wanted)
{
	char system[NEAR_NAME_MAX];

	near_init(near, wanted);
	while (*list) {
		size_t size = strcspn(list, ":\n");

		if (list[size] == ':' && size < sizeof(system)) {
			memcpy(system, list, size);
			system[size] = '\0';
			near_offer(near, system);
		}
		list += strcspn(list, "\n");
		list += *list == '\n';
	}
}

/* Adds what the user may have meant to a refused tracepoint, and puts the mark under the system where there is none of its
 * name. A list that can't be had is no new failure. */
static void add_near_tracepoints(struct tfan *tfan, const struct location *location)
{
	const struct failure kept = tfan->failure;
	char wanted[2 * CONTROL_NAME_MAX + 2], words[512];
	int place = location->spec.symbol_position;
	const char *list = NULL;
	struct near near;

	(void)snprintf(wanted, sizeof(wanted), "%s:%s", location->spec.system, location->spec.event);
	near_init(&near, wanted);
	if (tfan_list(tfan, &list) == 0)
		offer_lines(&near, list);
	if (list && *list && !has_system(list, location->spec.system)) {
		place = location->spec.place_position;
		if (!near.count)
			offer_systems(&near, list, location->spec.system);
	}
	failure_restore(&tfan->failure, &kept);
	tfan->failure.public.position = place;
	failure_append(&tfan->failure, "%s", near_text(&near, words, sizeof(words)));
}

static void add_near_functions(struct tfan *tfan, const struct location *location)
{
	struct kernel_symbols symbols;
	char words[512];

	kernel_symbols_find(&symbols, location->spec.symbol, true);
	if (!symbols.count)
		failure_append(&tfan->failure, "; the kernel has no function of this name%s",
			near_text(&symbols.near, words, sizeof(words)));
}

/* The kernel says that a type is wrong, and not which there are. */
static void add_types(struct tfan *tfan)
{
	static const char *const words[] = { "Unknown type", "String accepts only memory", "type does not fit for string" };
	const char *message = tfan->failure.public.message;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!message || !strstr(message, words[i]))
			continue;
		failure_append(&tfan->failure, "; types: u8 to u64, s8 to s64, x8 to x64, string, ustring; "
			"a string needs a place in memory, as in +0($arg1):string");
		return;
	}
}

/* Says which argument it was where the position can't. */
static void name_argument(struct tfan *tfan, const struct location *location, const struct control_create *request,
	int packed)
{
	const char *argument = fetch_argument(&location->places, request, packed);

	tfan->failure.public.position = fetch_position(&location->places, packed);
	if (argument && tfan->failure.public.position < 0)
		failure_append(&tfan->failure, " (argument \"%s\")", argument);
	add_types(tfan);
}

/* Tells what is wrong with a filter in the user's text, or which condition it is of. */
static void place_in_filter(struct tfan *tfan, const struct probe_spec *spec)
{
	struct tfan_failure *failure = &tfan->failure.public;

	if (spec->filter_position < 0) {
		failure_append(&tfan->failure, " (condition \"%s\")", spec->filter);
		failure->position = -1;
	} else if (failure->position >= 0) {
		failure->position += spec->filter_position;
	}
}

int location_define(struct tfan *tfan, const struct location *location, struct control_create *request)
{
	int rc = functions_define(tfan, request->filter, sizeof(request->filter));

	if (rc)
		place_in_filter(tfan, &location->spec);
	return rc;
}

int location_refused(struct tfan *tfan, const struct location *location, const struct control_create *request,
	uint32_t status, const struct control_failure *from)
{
	const struct probe_spec *spec = &location->spec;
	int rc = failure_take(&tfan->failure, status, from);
	struct tfan_failure *failure = &tfan->failure.public;

	switch (failure->category) {
	case TFAN_USAGE:
		place_in_filter(tfan, spec);
		break;
	case TFAN_FETCH_ARG:
		name_argument(tfan, location, request, failure->position);
		break;
	case TFAN_LOCATION:
		failure->position = spec->symbol_position;
		if (spec->kind == PROBE_TRACEPOINT || spec->kind == PROBE_EVENT)
			add_near_tracepoints(tfan, location);
		if (is_kernel_place(spec) && !tfan->session.is_recorded)
			add_near_functions(tfan, location);
		break;
	default:
		break;
	}
	return rc;
}
