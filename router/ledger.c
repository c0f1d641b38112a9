#include "router/ledger.h"

#include "base/checked.h"
#include "shm/control_abi.h"

#include <errno.h>
#include <string.h>

int ledger_fact_next(const void *blob, size_t size, size_t *at, struct control_fact_header *ret, const char **ret_bytes)
{
	const char *bytes = blob;
	struct control_fact_header fact;

	if (*at == size)
		return 0;
	if (!range_inside(*at, sizeof(fact), size))
		return -EBADMSG;
	memcpy(&fact, bytes + *at, sizeof(fact));
	if (!range_inside(*at + sizeof(fact), fact.size, size))
		return -EBADMSG;
	*ret = fact;
	*ret_bytes = bytes + *at + sizeof(fact);
	*at += sizeof(fact) + align_up(fact.size, 8);
	if (*at > size)
		*at = size;
	return 1;
}

/* The number behind "NAME: " at the beginning of a line. */
static uint64_t stats_number(const char *text, size_t size, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = text, *end = text + size; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));

		stop = stop ? stop : end;
		if ((size_t)(stop - line) > length + 1 && memcmp(line, name, length) == 0 && line[length] == ':') {
			uint64_t value = 0;

			for (const char *p = line + length + 1; p < stop; p++) {
				if (*p >= '0' && *p <= '9')
					value = value * 10 + (uint64_t)(*p - '0');
			}
			return value;
		}
		line = stop + 1;
	}
	return 0;
}

int ledger_kernel_parse(const void *blob, size_t size, struct ledger_kernel *ret)
{
	struct ledger_kernel kernel = { 0 };
	struct control_fact_header fact;
	const char *bytes;
	size_t at = 0;
	int r;

	while ((r = ledger_fact_next(blob, size, &at, &fact, &bytes)) == 1) {
		if (fact.fact != FACT_STATS)
			continue;
		kernel.read += stats_number(bytes, fact.size, "read events");
		kernel.overrun += stats_number(bytes, fact.size, "overrun");
		kernel.entries += stats_number(bytes, fact.size, "entries");
		kernel.dropped += stats_number(bytes, fact.size, "dropped events") + stats_number(bytes, fact.size, "commit overrun");
	}
	if (r < 0)
		return r;
	*ret = kernel;
	return 0;
}
