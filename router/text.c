#include "router/text.h"

#include <errno.h>
#include <string.h>

/* A prefix begins near the line's start. The kernel's names have 15 bytes; post-processed logs put whole
 * process names there, or a file's name in front. Further right it is the event's own text. */
#define PREFIX_REACH 256

/* A name's column: "%16s". */
#define COMM_WIDEST 16

#define FLAGS_LEAST 4
#define FLAGS_MOST  8

/* What one attempt at a prefix reads, moved along `at`. */
struct scan {
	const char *at, *end;
	bool glued; /* latency format: no brackets around the CPU */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Whether nothing more of a word stands at `at`. The newline is one of an event's text. */
static bool is_behind(const char *at, const char *end)
{
	return at == end || is_blank(*at) || *at == '\n';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void skip_blanks(struct scan *scan)
{
	while (scan->at < scan->end && is_blank(*scan->at))
		scan->at++;
}

static bool skip_char(struct scan *scan, char c)
{
	if (scan->at == scan->end || *scan->at != c)
		return false;
	scan->at++;
	return true;
}

static bool skip_word(struct scan *scan, const char *word, size_t size)
{
	if ((size_t)(scan->end - scan->at) < size || memcmp(scan->at, word, size) != 0)
		return false;
	scan->at += size;
	return true;
}

/* A decimal number of at most `most`; how many digits it had, 0 where there is none. */
static unsigned int scan_number(struct scan *scan, uint64_t most, uint64_t *ret)
{
	const char *start = scan->at;
	const char *at = start;
	uint64_t value = 0;

	for (; at < scan->end && is_digit(*at); at++) {
		unsigned int digit = (unsigned int)(*at - '0');

		if (value > (most - digit) / 10)
			return 0;
		value = value * 10 + digit;
	}
	scan->at = at;
	*ret = value;
	return (unsigned int)(at - start);
}

/* "(  611)" or "(-----)", five or seven wide: the thread group. */
static bool scan_tgid(struct scan *scan, int32_t *ret)
{
	uint64_t value;

	if (!skip_char(scan, '('))
		return false;
	skip_blanks(scan);
	if (scan_number(scan, INT32_MAX, &value)) {
		*ret = (int32_t)value;
	} else {
		const char *start = scan->at;

		while (skip_char(scan, '-'))
			;
		if (scan->at == start)
			return false;
		*ret = -1;
	}
	return skip_char(scan, ')');
}

/* The irq-info characters: four, five since 5.15, seven with PREEMPT_RT, one more with 2.6.33's lock depth.
 * Which letters there are changes with the kernel, so that only the class is asked for. */
static bool scan_flags(struct scan *scan, struct text_piece *ret)
{
	const char *start = scan->at;
	const char *at = start;

	while (at < scan->end && (is_letter(*at) || is_digit(*at) || *at == '.' || *at == '#'))
		at++;
	if (at - start < FLAGS_LEAST || at - start > FLAGS_MOST || at == scan->end ||
		!is_blank(*at))
		return false;
	scan->at = at;
	*ret = (struct text_piece){ start, (size_t)(at - start) };
	return true;
}

/* "17284.993652:", nine digits of "trace-cmd report -t", or a clock that counts, twelve wide ("
 * 123456:"). Shorter forms are refused: with these, a prefix has no room in the 15 bytes of a name,
 * so that the first prefix of a line can't be one that a thread's name holds. `blanks` is where the
 * column begins. */
static bool scan_time(struct scan *scan, const char *blanks, struct text_line *line)
{
	static const uint32_t scale[] = { 1000, 100, 10, 1 };
	uint64_t whole, part;

	if (!scan_number(scan, UINT64_MAX, &whole))
		return false;
	if (skip_char(scan, '.')) {
		unsigned int digits = scan_number(scan, 999999999, &part);

		if (digits < 6 || digits > 9 || whole > UINT64_MAX / 1000000000 - 1)
			return false;
		line->time = whole * 1000000000 + part * scale[digits - 6];
		line->time_is_ns = digits == 9;
	} else {
		if (scan->at - blanks < 12)
			return false;
		line->time = whole;
		line->time_is_ns = true;
	}
	return skip_char(scan, ':') && is_behind(scan->at, scan->end);
}

/* Latency format's "34373us+:": the mark of a long delay, or a blank, before the colon. */
static bool scan_latency(struct scan *scan, struct text_line *line)
{
	uint64_t us;

	if (!scan_number(scan, UINT64_MAX / 1000, &us) || !skip_word(scan, "us", 2))
		return false;
	if (scan->at == scan->end || !memchr(" +!#*@$", *scan->at, 7))
		return false;
	scan->at++;
	line->time = us * 1000;
	return skip_char(scan, ':') && is_behind(scan->at, scan->end);
}

/* "[003] dNh2  108.255501:". */
static bool scan_bracketed(struct scan *scan, struct text_line *line)
{
	const char *blanks;
	struct scan ahead;
	uint64_t cpu;

	if (!skip_char(scan, '[') || !scan_number(scan, UINT16_MAX, &cpu) || !skip_char(scan, ']'))
		return false;
	line->cpu = (uint32_t)cpu;
	blanks = scan->at;
	skip_blanks(scan);
	ahead = *scan;
	if (scan_flags(&ahead, &line->flags)) {
		blanks = ahead.at;
		skip_blanks(&ahead);
		*scan = ahead;
	}
	return scan_time(scan, blanks, line);
}

/* "3dNh2   21us+:" and "0d..2    86.398612:" of "trace-cmd report -l": the CPU stands before the
 * flags. */
static bool scan_glued(struct scan *scan, struct text_line *line)
{
	const char *blanks;
	struct scan ahead;
	uint64_t cpu;

	scan->glued = true;
	if (!scan_number(scan, UINT16_MAX, &cpu) || !scan_flags(scan, &line->flags))
		return false;
	line->cpu = (uint32_t)cpu;
	blanks = scan->at;
	skip_blanks(scan);
	ahead = *scan;
	if (!scan_latency(&ahead, line))
		return scan_time(scan, blanks, line);
	*scan = ahead;
	return true;
}

/* Tries the '-' at `dash` as the one between name and pid. On success `scan` stands behind the
 * time. */
static bool scan_prefix(
	const char *dash, const char *end, struct scan *scan, struct text_line *line)
{
	uint64_t pid;

	*scan = (struct scan){ dash + 1, end, false };
	line->tgid = -1;
	line->flags = (struct text_piece){ dash, 0 };
	line->time_is_ns = false;
	if (!scan_number(scan, INT32_MAX, &pid) || scan->at == end || !is_blank(*scan->at))
		return false;
	line->pid = (int32_t)pid;
	skip_blanks(scan);
	if (scan->at < end && *scan->at == '(') {
		if (!scan_tgid(scan, &line->tgid))
			return false;
		skip_blanks(scan);
	}
	if (scan->at < end && *scan->at == '[')
		return scan_bracketed(scan, line);
	return scan_glued(scan, line);
}

/* The name as printed, without the blanks that fill it up on the left. Its own leading blanks can't
 * be told from those. */
static struct text_piece comm_of(const char *start, const char *dash)
{
	while (start < dash && is_blank(*start))
		start++;
	/* A report of several files has "trace.dat: " in front; no thread's name is that long. */
	if (dash - start > COMM_WIDEST) {
		const char *colon = memchr(start, ':', (size_t)(dash - start));

		if (colon && colon + 1 < dash && is_blank(colon[1])) {
			start = colon + 1;
			while (start < dash && is_blank(*start))
				start++;
		}
	}
	return (struct text_piece){ start, (size_t)(dash - start) };
}

static bool is_name(char c)
{
	return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '$' || c == '-';
}

/* Finds the event's name in `scan`'s rest. Function tracers print none, nor did bpf_trace_printk
 * of 4.x
 * (": : text"), and syscalls print theirs without a colon. */
static void read_body(struct scan *scan, struct text_line *line)
{
	const char *start, *at;

	(void)skip_char(scan, ' ');
	start = at = scan->at;
	while (at < scan->end && is_name(*at))
		at++;
	line->name = (struct text_piece){ start, 0 };
	if (at < scan->end && *at == ':' && is_behind(at + 1, scan->end)) {
		line->name.size = (size_t)(at - start);
		scan->at = at + 1;
		(void)skip_char(scan, ' ');
	} else if (at - start > 4 && memcmp(start, "sys_", 4) == 0) {
		struct scan ahead = { at, scan->end, false };

		if (skip_char(&ahead, '(') || skip_word(&ahead, " -> ", 4))
			line->name.size = (size_t)(at - start);
	}
	line->body = (struct text_piece){ scan->at, (size_t)(scan->end - scan->at) };
}

/* The first '-' of [at, reach) that begins a whole prefix, or NULL. */
static const char *find_prefix(const char *at, const char *reach, const char *end,
	struct scan *scan, struct text_line *line)
{
	const char *dash;

	for (; (dash = memchr(at, '-', (size_t)(reach - at))) != NULL; at = dash + 1)
		if (scan_prefix(dash, end, scan, line))
			break;
	return dash;
}

static bool read_event(const char *text, size_t size, struct text_line *line)
{
	const char *end = text + size;
	const char *reach = size > PREFIX_REACH ? text + PREFIX_REACH : end;
	struct scan scan;
	const char *dash = find_prefix(text, reach, end, &scan, line);

	if (!dash)
		return false;
	/* Latency format's prefix is short enough for a name ("-1 1.... 5us : "). If it was one,
	 * the true prefix follows where the name's column ends. */
	if (scan.glued && dash - text < COMM_WIDEST && size > COMM_WIDEST + 1) {
		struct text_line other = *line;
		struct scan behind;
		const char *second =
			find_prefix(dash + 1, text + COMM_WIDEST + 1, end, &behind, &other);

		if (second && !behind.glued) {
			*line = other;
			scan = behind;
			dash = second;
		}
	}
	line->kind = TEXT_EVENT;
	line->comm = comm_of(text, dash);
	read_body(&scan, line);
	return true;
}

/* "CPU:3 [LOST 1885 EVENTS]", without the count where the kernel doesn't know it; a report of
 * trace-cmd says "CPU:3 [1885 EVENTS DROPPED]". */
static bool read_lost(struct scan scan, struct text_line *line)
{
	uint64_t cpu, count;
	bool counted, dropped;

	if (!skip_word(&scan, "CPU:", 4))
		return false;
	skip_blanks(&scan);
	if (!scan_number(&scan, UINT16_MAX, &cpu))
		return false;
	skip_blanks(&scan);
	if (!skip_char(&scan, '['))
		return false;
	skip_blanks(&scan);
	dropped = !skip_word(&scan, "LOST", 4);
	skip_blanks(&scan);
	counted = scan_number(&scan, UINT64_MAX - 1, &count) > 0;
	skip_blanks(&scan);
	if (!skip_word(&scan, "EVENTS", 6))
		return false;
	skip_blanks(&scan);
	if (dropped && !skip_word(&scan, "DROPPED", 7))
		return false;
	skip_blanks(&scan);
	if (!skip_char(&scan, ']'))
		return false;
	skip_blanks(&scan);
	if (scan.at != scan.end)
		return false;
	line->kind = TEXT_LOST;
	line->cpu = (uint32_t)cpu;
	line->lost = counted ? count : TEXT_COUNT_UNKNOWN;
	return true;
}

/* " 3) # 9504.656 us |  }", " 3)  bash-431  =>  <idle>-0", with an absolute time in front where
 * asked for
 * ("  388.1 |   3)"). */
static bool read_graph(struct scan scan, struct text_line *line)
{
	uint64_t number, cpu;

	if (!scan_number(&scan, UINT64_MAX, &cpu))
		return false;
	if (skip_char(&scan, '.')) {
		if (!scan_number(&scan, UINT64_MAX, &number))
			return false;
		skip_blanks(&scan);
		if (!skip_char(&scan, '|'))
			return false;
		skip_blanks(&scan);
		if (!scan_number(&scan, UINT64_MAX, &cpu))
			return false;
	}
	if (cpu > UINT16_MAX || !skip_char(&scan, ')') || scan.at == scan.end ||
		!is_blank(*scan.at))
		return false;
	line->kind = TEXT_GRAPH;
	line->cpu = (uint32_t)cpu;
	line->body = (struct text_piece){ scan.at, (size_t)(scan.end - scan.at) };
	return true;
}

/* The graph tracer's rule between tasks. */
static bool is_rule(struct scan scan)
{
	const char *start = scan.at;

	while (skip_char(&scan, '-'))
		;
	if (scan.at - start < 20)
		return false;
	skip_blanks(&scan);
	return scan.at == scan.end;
}

/* What "trace-cmd report" says before the first event: "version = 6", "CPU 0 is empty", "cpus=8",
 * the last with the file's name in front where there are several. */
static bool is_preamble(struct scan scan)
{
	struct scan named = scan;
	uint64_t number;

	while (named.at < named.end && !is_blank(*named.at) && *named.at != '=')
		named.at++;
	if (named.at > scan.at && named.at[-1] == ':') {
		skip_blanks(&named);
		scan = named;
	}
	if (skip_word(&scan, "CPU ", 4))
		return scan_number(&scan, UINT16_MAX, &number) &&
		       skip_word(&scan, " is empty", 9) && scan.at == scan.end;
	return (skip_word(&scan, "cpus=", 5) || skip_word(&scan, "version = ", 10)) &&
	       scan_number(&scan, UINT16_MAX, &number) && scan.at == scan.end;
}

static void clear_line(const char *text, size_t size, struct text_line *ret)
{
	*ret = (struct text_line){
		.kind = TEXT_CONTINUATION,
		.whole = { text, size },
		.comm = { text, 0 },
		.tgid = -1,
		.cpu = TEXT_CPU_NONE,
		.flags = { text, 0 },
		.name = { text, 0 },
		.body = { text, size },
	};
}

void text_line_parse(const char *text, size_t size, struct text_line *ret)
{
	static const char too_big[] = "[LINE TOO BIG]";
	struct scan scan = { text, text + size, false };

	clear_line(text, size, ret);
	/* First, because a thread may be called "#1" or "=>". */
	if (read_event(text, size, ret))
		return;
	clear_line(text, size, ret);
	skip_blanks(&scan);
	if (scan.at == scan.end || (*scan.at == '\r' && scan.at + 1 == scan.end))
		ret->kind = TEXT_EMPTY;
	else if (text[0] == '#' || is_rule(scan) || is_preamble(scan))
		ret->kind = TEXT_COMMENT;
	else if (skip_word(&scan, "=>", 2))
		ret->kind = TEXT_STACK;
	else if (size == sizeof(too_big) - 1 && memcmp(text, too_big, size) == 0)
		ret->kind = TEXT_TOO_BIG;
	else if (!read_lost(scan, ret))
		(void)read_graph(scan, ret);
}

int text_event_name(const struct text_line *line, char *name, size_t room)
{
	static const char enter[] = "sys_enter_", leave[] = "sys_exit_";
	const char *head = enter, *at = line->name.at;
	size_t size = line->name.size, head_size = 0;

	/* A system call's body begins with its name; a name that ends with a colon stands before the body. */
	if (size > 4 && line->body.at == at) {
		bool enters = line->body.size > size && at[size] == '(';

		head = enters ? enter : leave;
		head_size = enters ? sizeof(enter) - 1 : sizeof(leave) - 1;
		at += 4;
		size -= 4;
	}
	if (head_size + size >= room)
		return -ENAMETOOLONG;
	memcpy(name, head, head_size);
	memcpy(name + head_size, at, size);
	name[head_size + size] = '\0';
	return 0;
}
