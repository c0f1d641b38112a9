#include "consumers/client/functions.h"

#include "consumers/client/connection.h"
#include "consumers/client/kallsyms.h"
#include "consumers/client/kernel_symbols.h"
#include "consumers/client/symbols.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\n\v\f\r"

/* What stands behind FIELD.function, if that is a comparison with a name. */
static bool take_name(const char *text, size_t at, struct functions_use *ret)
{
	at += strspn(text + at, BLANKS);
	if (text[at] == '!' && text[at + 1] == '=')
		at += 2;
	else if (text[at] == '=')
		at += text[at + 1] == '=' ? 2 : 1;
	else
		return false;
	at += strspn(text + at, BLANKS);
	if (text[at] == '"' || text[at] == '\'') {
		const char *end = strchr(text + at + 1, text[at]);

		*ret = (struct functions_use){ at + 1, end ? (size_t)(end - text) - at - 1 : 0 };
	} else {
		*ret = (struct functions_use){ at, strcspn(text + at, BLANKS "\"'(){}<>=!~,&|") };
	}
	return ret->size > 0;
}

bool functions_next(const char *text, size_t *at, struct functions_use *ret)
{
	static const char suffix[] = ".function";
	const char *end;

	for (size_t i = *at; text[i]; i++) {
		if (text[i] == '"' || text[i] == '\'') {
			end = strchr(text + i + 1, text[i]);
			if (!end)
				return false;
			i = (size_t)(end - text);
			continue;
		}
		if (strncmp(text + i, suffix, strlen(suffix)) != 0 || !take_name(text, i + strlen(suffix), ret))
			continue;
		*at = ret->at + ret->size;
		/* Its closing quote. */
		*at += text[ret->at - 1] == '"' || text[ret->at - 1] == '\'';
		return true;
	}
	return false;
}

/* Both are what the kernel's filters ask for. */
static int find(const struct kallsyms *kernel, const char *name, uint64_t *ret_low, uint64_t *ret_high)
{
	const struct kallsyms_row *row;

	if (isdigit((unsigned char)*name))
		row = kallsyms_find(kernel, strtoull(name, NULL, 0));
	else
		row = kallsyms_named(kernel, name);
	if (!row || kallsyms_end(kernel, row, ret_high) < 0)
		return -ENOENT;
	*ret_low = row->address;
	return 0;
}

static int not_found(struct tfan *tfan, const struct kallsyms *kernel, const char *name, size_t position)
{
	struct kernel_symbols symbols;
	char words[512];

	if (kernel->count == 0)
		return failure_set(&tfan->failure, TFAN_NOT_PERMITTED, EPERM, (int)position,
			"filter: this user may not see where the kernel's functions lie (sysctl kernel.kptr_restrict and "
			"kernel.perf_event_paranoid); run as root");
	if (isdigit((unsigned char)*name))
		return failure_set(&tfan->failure, TFAN_USAGE, EINVAL, (int)position,
			"filter: no function of the kernel holds the address %s", name);
	kernel_symbols_find(&symbols, name, true);
	return failure_set(&tfan->failure, TFAN_USAGE, EINVAL, (int)position,
		"filter: the kernel has no function '%s'%s", name, near_text(&symbols.near, words, sizeof(words)));
}

/* Appends "LEAD NAME = LOW..HIGH". */
static int define(struct tfan *tfan, const struct kallsyms *kernel, const char *lead, const struct functions_use *use, char *filter,
	size_t room)
{
	char name[KERNEL_SYMBOL_MAX] = "";
	size_t size = strlen(filter);
	uint64_t low = 0, high = 0;
	int n;

	(void)snprintf(name, sizeof(name), "%.*s", (int)(use->size < sizeof(name) ? use->size : sizeof(name)), filter + use->at);
	if (find(kernel, name, &low, &high) < 0)
		return not_found(tfan, kernel, name, use->at);
	n = snprintf(filter + size, room - size, "%s %s = 0x%" PRIx64 "..0x%" PRIx64, lead, name, low, high);
	if (n < 0 || (size_t)n >= room - size)
		return failure_set(&tfan->failure, TFAN_USAGE, ENAMETOOLONG, (int)use->at,
			"filter: with the places of its functions it is longer than %zu bytes", room - 1);
	return 0;
}

int functions_define(struct tfan *tfan, char *filter, size_t room)
{
	struct functions_use use;
	struct kallsyms kernel;
	const char *lead = "\nwhere";
	size_t at = 0, end = strlen(filter);
	int rc = 0;

	if (tfan->session.is_recorded || !functions_next(filter, &at, &use))
		return 0;
	if (symbols_read_kernel(&kernel) < 0)
		return failure_set(&tfan->failure, TFAN_FAILED, ENOMEM, -1, "filter: no memory for the kernel's functions");
	do {
		rc = define(tfan, &kernel, lead, &use, filter, room);
		lead = ",";
	} while (rc == 0 && functions_next(filter, &at, &use) && use.at < end);
	kallsyms_release(&kernel);
	return rc;
}
