#include "router/ledger.h"

#include "base/checked.h"
#include "shm/control_abi.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct ledger_word {
	const char *at;
	size_t size;
};

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
		if (fact.fact == FACT_TRACING_ON && fact.size)
			kernel.off = bytes[0] == '0';
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

/* Adds to *before what it lacks to `least`. Returns whether it lacked anything. */
static bool make_up(uint64_t *before, uint64_t now, uint64_t least)
{
	const bool lacks = now + *before < least;

	if (lacks)
		*before = least - now;
	return lacks;
}

bool ledger_counts_take(struct ledger_counts *counts, uint64_t known, struct ledger_kernel *kernel)
{
	struct ledger_kernel *before = &counts->before;
	const struct ledger_kernel *last = &counts->last;
	const bool read = make_up(&before->read, kernel->read, known > last->read ? known : last->read);
	const bool overrun = make_up(&before->overrun, kernel->overrun, last->overrun);
	const bool dropped = make_up(&before->dropped, kernel->dropped, last->dropped);

	kernel->read += before->read;
	kernel->overrun += before->overrun;
	kernel->dropped += before->dropped;
	counts->last = *kernel;
	counts->cleared += read || overrun || dropped;
	return read || overrun || dropped;
}

/* The last `count` blank-separated words of a line, the last first. Returns how many there are. */
static size_t last_words(const char *line, const char *end, struct ledger_word *words, size_t count)
{
	size_t n = 0;

	while (n < count) {
		while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
			end--;
		if (end == line)
			break;
		words[n].size = 0;
		while (end > line && end[-1] != ' ' && end[-1] != '\t') {
			end--;
			words[n].size++;
		}
		words[n++].at = end;
	}
	return n;
}

static bool word_number(const struct ledger_word *word, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < word->size; i++) {
		if (word->at[i] < '0' || word->at[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(word->at[i] - '0');
	}
	*ret = value;
	return word->size > 0;
}

/* "  EVENT HITS MISSED" of kprobe_profile, "  FILE EVENT HITS" of uprobe_profile, whose files may hold blanks:
 * so a line is read from its end. */
static bool profile_line(const char *line, const char *end, bool kprobe, struct ledger_probe *ret)
{
	struct ledger_word words[3];
	size_t numbers = kprobe ? 2 : 1;

	*ret = (struct ledger_probe){ 0 };
	if (last_words(line, end, words, numbers + 1) != numbers + 1)
		return false;
	if (kprobe && !word_number(&words[0], &ret->missed))
		return false;
	if (!word_number(&words[numbers - 1], &ret->hits))
		return false;
	ret->event = words[numbers].at;
	ret->event_size = words[numbers].size;
	return true;
}

int ledger_probes_parse(const void *blob, size_t size, void (*take)(void *context, const struct ledger_probe *probe),
	void *context)
{
	struct control_fact_header fact;
	const char *bytes;
	size_t at = 0;
	int r;

	while ((r = ledger_fact_next(blob, size, &at, &fact, &bytes)) == 1) {
		if (fact.fact != FACT_KPROBE_PROFILE && fact.fact != FACT_UPROBE_PROFILE)
			continue;
		for (const char *line = bytes, *end = bytes + fact.size; line < end;) {
			const char *stop = memchr(line, '\n', (size_t)(end - line));
			struct ledger_probe probe;

			stop = stop ? stop : end;
			if (profile_line(line, stop, fact.fact == FACT_KPROBE_PROFILE, &probe))
				take(context, &probe);
			line = stop + 1;
		}
	}
	return r;
}
