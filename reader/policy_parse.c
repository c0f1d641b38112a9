#include "reader/policy_parse.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "reader/setting.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
	struct policy *policy;
	struct policy_error *error;
	unsigned int line;
};

static const char *const places[] = {
	[POLICY_TRACEPOINT] = "tracepoint:",
	[POLICY_KPROBE] = "kprobe:",
	[POLICY_UPROBE] = "uprobe:",
	[POLICY_USDT] = "usdt:",
};

__attribute__((format(printf, 2, 3))) static int fail(
	const struct parser *parser, const char *format, ...)
{
	va_list ap;

	parser->error->line = parser->line;
	va_start(ap, format);
	(void)vsnprintf(parser->error->message, sizeof(parser->error->message), format, ap);
	va_end(ap);
	return -EINVAL;
}

/* The next word of the line, NUL-terminated in place; NULL at its end, or where a comment begins.
 */
static char *next_word(char **at)
{
	char *word = *at + strspn(*at, " \t"), *end = word + strcspn(word, " \t");

	if (!*word || *word == '#')
		return NULL;
	*at = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static bool all_digits(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

static int parse_number(const struct parser *parser, const char *key, const char *text,
	unsigned long least, unsigned long most, uint32_t *ret)
{
	unsigned long value;

	errno = 0;
	value = all_digits(text) ? strtoul(text, NULL, 10) : 0;
	if (!all_digits(text) || errno || value < least || value > most)
		return fail(parser, "%s is a number from %lu to %lu, not \"%.60s\"", key, least,
			most, text);
	*ret = (uint32_t)value;
	return 0;
}

static int parse_subject(const struct parser *parser, const char *word, struct policy_subject *ret)
{
	struct policy_subject subject = { .kind = POLICY_EVERYONE };
	const char *name = word ? strchr(word, '=') : NULL;

	if (!word)
		return fail(parser, "who is meant? Say user=NAME, group=NAME or everyone");
	if (!strcmp(word, "everyone")) {
		*ret = subject;
		return 0;
	}
	if (!strncmp(word, "user=", 5))
		subject.kind = POLICY_USER;
	else if (!strncmp(word, "group=", 6))
		subject.kind = POLICY_GROUP;
	if (subject.kind == POLICY_EVERYONE || !name[1])
		return fail(parser,
			"\"%.60s\" names nobody: say user=NAME, group=NAME (or their numbers) or "
			"everyone",
			word);
	subject.name = name + 1;
	if (isdigit((unsigned char)name[1]) &&
		parse_number(parser, "the number of a user or group", name + 1, 0, UINT32_MAX - 1,
			&subject.id) < 0)
		return -EINVAL;
	*ret = subject;
	return 0;
}

static int parse_place(const struct parser *parser, const char *word, struct policy_rule *rule)
{
	const char *pattern = NULL;

	for (size_t i = 0; word && i < ARRAY_SIZE(places); i++) {
		if (strncmp(word, places[i], strlen(places[i])) != 0)
			continue;
		rule->place = (enum policy_place)i;
		pattern = word + strlen(places[i]);
	}
	if (!pattern || !*pattern)
		return fail(parser,
			"which probes? Say tracepoint:SYSTEM:EVENT, kprobe:SYMBOL, uprobe:PATH or "
			"usdt:PATH%s%.60s",
			word ? ", not " : "", word ? word : "");
	if (rule->place == POLICY_TRACEPOINT && !strchr(pattern, ':'))
		return fail(parser, "a tracepoint is SYSTEM:EVENT, as in tracepoint:sched:*");
	if (rule->place >= POLICY_UPROBE && *pattern != '/' && strncmp(pattern, "**", 2) != 0)
		return fail(parser, "a path begins with '/' (or is **, any file)");
	rule->pattern = pattern;
	return 0;
}

/* ---- what stands behind the place ---- */

static int one_of(const struct parser *parser, const char *key, const char *value,
	const char *const *words, unsigned int count, unsigned int *ret)
{
	for (unsigned int i = 0; i < count; i++) {
		if (!strcmp(value, words[i])) {
			*ret = i;
			return 0;
		}
	}
	return fail(parser, "%s is %s, %s%s%s, not \"%.60s\"", key, words[0], words[1],
		count > 2 ? " or " : "", count > 2 ? words[2] : "", value);
}

static const char *const no_yes[] = { "no", "yes" };

static int set_fetch(
	const struct parser *parser, const char *key, const char *value, struct policy_rule *rule)
{
	static const char *const words[] = { "none", "registers", "memory" };
	unsigned int choice = 0;
	int r;

	if (rule->place == POLICY_TRACEPOINT)
		return fail(parser, "a tracepoint has no fetch arguments: leave %s out", key);
	r = one_of(parser, key, value, words, ARRAY_SIZE(words), &choice);
	if (!r)
		rule->fetch = (enum policy_fetch)choice;
	return r;
}

static int set_scope(
	const struct parser *parser, const char *key, const char *value, struct policy_rule *rule)
{
	static const char *const words[] = { "all", "own" };
	unsigned int choice = 0;
	int r = one_of(parser, key, value, words, ARRAY_SIZE(words), &choice);

	if (!r)
		rule->own = choice;
	return r;
}

static int set_addresses(
	const struct parser *parser, const char *key, const char *value, struct policy_rule *rule)
{
	unsigned int choice = 0;
	int r = one_of(parser, key, value, no_yes, ARRAY_SIZE(no_yes), &choice);

	if (!r)
		rule->addresses = choice;
	return r;
}

static int set_semaphore(
	const struct parser *parser, const char *key, const char *value, struct policy_rule *rule)
{
	unsigned int choice = 0;
	int r;

	if (rule->place != POLICY_USDT)
		return fail(parser, "only usdt probes have a semaphore: leave %s out", key);
	r = one_of(parser, key, value, no_yes, ARRAY_SIZE(no_yes), &choice);
	if (!r)
		rule->semaphore = choice;
	return r;
}

static int set_rate(
	const struct parser *parser, const char *key, const char *value, struct policy_rule *rule)
{
	return parse_number(parser, key, value, 1, UINT32_MAX, &rule->rate);
}

static const struct {
	const char *key;
	int (*set)(const struct parser *parser, const char *key, const char *value,
		struct policy_rule *rule);
} conditions[] = {
	{ "fetch", set_fetch },
	{ "scope", set_scope },
	{ "rate", set_rate },
	{ "semaphore", set_semaphore },
	{ "kernel-addresses", set_addresses },
};

/* "KEY=VALUE"; *ret_value is what is behind the sign. */
static bool is_key(const char *word, const char *key, const char **ret_value)
{
	size_t length = strlen(key);

	if (strncmp(word, key, length) != 0 || word[length] != '=')
		return false;
	*ret_value = word + length + 1;
	return true;
}

/* `given`: bits of those that stood before it. */
static int parse_condition(
	const struct parser *parser, const char *word, struct policy_rule *rule, unsigned int *given)
{
	const char *value;

	if (!rule->allow)
		return fail(parser, "a deny line ends behind the place, before \"%.60s\"", word);
	for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
		if (!is_key(word, conditions[i].key, &value))
			continue;
		if (*given & 1U << i)
			return fail(parser, "%s= stands twice: leave one out", conditions[i].key);
		*given |= 1U << i;
		return conditions[i].set(parser, conditions[i].key, value, rule);
	}
	return fail(parser, "\"%.60s\" is none of fetch=, scope=, rate=, semaphore= and kernel-addresses=", word);
}

/* ---- lines ---- */

/* Room for one more of `count` elements of `size` bytes; 0 or -errno. */
static int make_room(const struct parser *parser, void *list, size_t count, size_t size)
{
	void **place = list, *bigger;

	if (count >= POLICY_RULES_MAX)
		return fail(parser, "more than %d lines", POLICY_RULES_MAX);
	if (count & (count - 1))
		return 0;
	bigger = realloc(*place, (count ? 2 * count : 1) * size);
	if (!bigger)
		return -ENOMEM;
	*place = bigger;
	return 0;
}

static int parse_rule(const struct parser *parser, bool allow, const char *shown, char *rest)
{
	struct policy *policy = parser->policy;
	struct policy_rule rule = { .line = parser->line, .allow = allow };
	unsigned int given = 0;
	const char *word;
	int r = parse_subject(parser, next_word(&rest), &rule.subject);

	if (!r)
		r = parse_place(parser, next_word(&rest), &rule);
	/* A traced program's own memory is what user probes are for; the kernel's is everybody's.
	 */
	rule.fetch = rule.place == POLICY_KPROBE ? POLICY_FETCH_REGISTERS : POLICY_FETCH_MEMORY;
	while (!r && (word = next_word(&rest)))
		r = parse_condition(parser, word, &rule, &given);
	if (!r)
		r = make_room(parser, &policy->rules, policy->rule_count, sizeof(rule));
	if (r < 0)
		return r;
	memcpy(rule.shown, shown, POLICY_SHOWN_MAX);
	policy->rules[policy->rule_count++] = rule;
	return 0;
}

/* `given`: bits of those that stood before it. */
static int parse_limit(const struct parser *parser, const char *word, struct policy_limits *limits,
	unsigned int *given)
{
	static const char *const keys[] = { "ring", "consumers", "probes", "rate" };
	uint32_t *const numbers[] = { NULL, &limits->consumers, &limits->probes, &limits->rate };
	const char *value;
	unsigned int i = 0;

	while (i < ARRAY_SIZE(keys) && !is_key(word, keys[i], &value))
		i++;
	if (i == ARRAY_SIZE(keys))
		return fail(
			parser, "\"%.60s\" is none of consumers=, ring=, probes= and rate=", word);
	if (*given & 1U << i)
		return fail(parser, "%s= stands twice: leave one out", keys[i]);
	*given |= 1U << i;
	if (numbers[i] == &limits->rate)
		return parse_number(parser, keys[i], value, 1, UINT32_MAX, numbers[i]);
	if (numbers[i])
		return parse_number(parser, keys[i], value, 0, 65536, numbers[i]);
	if (setting_size(value, &limits->ring) < 0)
		return fail(parser, "ring is a size such as 64M, not \"%.60s\"", value);
	return 0;
}

static int parse_limits(const struct parser *parser, const char *shown, char *rest)
{
	struct policy *policy = parser->policy;
	struct policy_limits limits = POLICY_LIMITS_USUAL;
	const char *word;
	unsigned int given = 0;
	int r = parse_subject(parser, next_word(&rest), &limits.subject);

	limits.line = parser->line;
	while (!r && (word = next_word(&rest)))
		r = parse_limit(parser, word, &limits, &given);
	if (!r && !given)
		r = fail(parser, "a limit on what? Say consumers=, ring=, probes= or rate=");
	if (!r)
		r = make_room(parser, &policy->limits, policy->limit_count, sizeof(limits));
	if (r < 0)
		return r;
	memcpy(limits.shown, shown, POLICY_SHOWN_MAX);
	policy->limits[policy->limit_count++] = limits;
	return 0;
}

static int parse_line(const struct parser *parser, char *line)
{
	char shown[POLICY_SHOWN_MAX] = "", *rest = line;
	const char *word;

	(void)snprintf(shown, sizeof(shown), "%s", line + strspn(line, " \t"));
	word = next_word(&rest);
	if (!word)
		return 0;
	if (!strcmp(word, "allow") || !strcmp(word, "deny"))
		return parse_rule(parser, *word == 'a', shown, rest);
	if (!strcmp(word, "limit"))
		return parse_limits(parser, shown, rest);
	return fail(parser, "a line begins with allow, deny or limit, not with \"%.60s\"", word);
}

/* What a terminal or a log should not be shown, and what can't be seen in an editor. */
static int check_bytes(const struct parser *parser, const char *line, size_t length)
{
	if (length > POLICY_LINE_MAX)
		return fail(parser, "longer than %d bytes", POLICY_LINE_MAX);
	for (size_t i = 0; i < length; i++) {
		if (((unsigned char)line[i] < 0x20 && line[i] != '\t') || line[i] == 0x7f)
			return fail(parser, "a control character (0x%02x) in column %zu",
				(unsigned int)(unsigned char)line[i], i + 1);
	}
	return 0;
}

static int parse_lines(struct parser *parser, char *text, size_t size)
{
	char *end = text + size;

	for (char *line = text, *stop; line < end; line = stop + 1) {
		int r;

		stop = memchr(line, '\n', (size_t)(end - line));
		if (!stop)
			stop = end;
		parser->line++;
		r = check_bytes(parser, line, (size_t)(stop - line));
		*stop = '\0';
		if (!r)
			r = parse_line(parser, line);
		if (r < 0)
			return r;
	}
	return 0;
}

int policy_parse(const char *path, const char *bytes, size_t size, struct policy *ret,
	struct policy_error *ret_error)
{
	struct policy policy = { .path = path };
	struct parser parser = { .policy = &policy, .error = ret_error };
	int r;

	if (size > POLICY_TEXT_MAX)
		return fail(&parser, "larger than %u KiB", POLICY_TEXT_MAX >> 10);
	policy.text = malloc(size + 1);
	if (!policy.text)
		return -ENOMEM;
	if (size)
		memcpy(policy.text, bytes, size);
	policy.text[size] = '\0';
	r = parse_lines(&parser, policy.text, size);
	if (r < 0) {
		policy_release(&policy);
		return r;
	}
	*ret = policy;
	return 0;
}

void policy_release(struct policy *policy)
{
	free(policy->rules);
	free(policy->limits);
	free(policy->text);
	policy->rules = NULL;
	policy->limits = NULL;
	policy->text = NULL;
	policy->rule_count = policy->limit_count = 0;
}
