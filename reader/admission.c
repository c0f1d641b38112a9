#include "reader/admission.h"

#include "base/exit_status.h"
#include "reader/policy_fetch.h"
#include "reader/probe_line.h"
#include "reader/probe_name.h"
#include "reader/target_path.h"
#include "shm/control.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static enum policy_place place_of(uint32_t kind)
{
	switch (kind) {
	case PROBE_TRACEPOINT:
		return POLICY_TRACEPOINT;
	case PROBE_KPROBE:
	case PROBE_KRETPROBE:
	/* Its arguments read the kernel's memory as theirs do. */
	case PROBE_EVENT:
		return POLICY_KPROBE;
	case PROBE_USDT:
		return POLICY_USDT;
	default:
		return POLICY_UPROBE;
	}
}

static int no_name(const struct control_create *create, int error, struct control_failure *failure)
{
	control_failure_set(failure, -error, -1,
		"probe \"%s\": the policy knows files by their paths, and the file has none that "
		"%s",
		create->name,
		error == -EACCES
			? "the session's reader can look up: its folders must be open to others"
		: error == -ESTALE
			? "names it here: it was removed or replaced, or lies in another mount "
			  "namespace"
			: "can be found out");
	return EXIT_NOT_PERMITTED;
}

/* What the place is called; texts point into `create` or `name`. */
static int name_place(const struct control_create *create, int target, char *name, size_t size,
	struct policy_wish *wish, struct control_failure *failure)
{
	int r;

	wish->name = name;
	switch (wish->place) {
	case POLICY_TRACEPOINT:
		(void)snprintf(name, size, "%s:%s", create->system, create->event);
		return EXIT_DONE;
	case POLICY_KPROBE:
		if (create->kind == PROBE_EVENT) {
			(void)snprintf(name, size, "%s:%s", create->system, create->event);
			return EXIT_DONE;
		}
		wish->name = create->symbol;
		wish->offset = create->offset != 0;
		return EXIT_DONE;
	default:
		r = target < 0 ? -EBADF : target_path(target, name, size, &wish->linked);
		return r < 0 ? no_name(create, r, failure) : EXIT_DONE;
	}
}

/* Stacks are addresses: the kernel's are root's, unless a file's line says otherwise (which policy_decide has looked at), a
 * program's its user's. */
static int admit_stacks(const struct policy *policy, const struct policy_identity *identity, const struct control_create *create,
	int status, const struct policy_grant *grant, struct control_failure *failure)
{
	if (status != EXIT_DONE || identity->uid == 0)
		return status;
	if (create->flags & CREATE_KERNEL_STACK && !policy->path) {
		control_failure_set(failure, EPERM, -1,
			"the stacks of the kernel hold its addresses, which are root's alone: leave out "
			"stack, ask as root, or have a policy's line say kernel-addresses=yes");
		return EXIT_NOT_PERMITTED;
	}
	if (create->flags & CREATE_USER_STACK && !grant->own) {
		control_failure_set(failure, EPERM, -1,
			"the stacks of programs hold their addresses: leave out ustack, or let the policy's "
			"line say scope=own");
		return EXIT_NOT_PERMITTED;
	}
	return status;
}

int admission_probe(const struct policy *policy, const struct policy_identity *identity,
	const struct control_create *create, int target, struct policy_grant *ret,
	struct control_failure *ret_failure)
{
	struct policy_wish wish = {
		.place = place_of(create->kind),
		.semaphore = create->ref_offset != 0,
		.addresses = create->flags & CREATE_KERNEL_STACK,
		.fetch = policy_fetch_needed(create->fetch, create->fetch_count),
	};
	char name[PATH_MAX] = "";

	/* Another session's probes are its own consumers' alone. */
	if ((create->kind == PROBE_TRACEPOINT || create->kind == PROBE_EVENT) && identity->uid != 0 && !policy->replay &&
		probe_name_is_group(create->system)) {
		control_failure_set(ret_failure, EPERM, -1,
			"%s:%s is the probe of a session; define one of your own", create->system,
			create->event);
		return EXIT_NOT_PERMITTED;
	}
	/* Only a file's lines ask for more than the kind. */
	if (policy->path && identity->uid != 0) {
		int status = name_place(create, target, name, sizeof(name), &wish, ret_failure);

		if (status)
			return status;
	}
	return admit_stacks(policy, identity, create,
		policy_decide(policy, identity, &wish, ret, ret_failure), ret, ret_failure);
}

/* ---- the list ---- */

/* The line that allows an event, or NULL. */
static const struct policy_rule *allowing(
	const struct policy *policy, const struct policy_identity *identity, const char *event)
{
	const struct policy_wish wish = { .place = POLICY_TRACEPOINT, .name = event };
	const struct policy_rule *rule = policy_find(policy, identity, &wish);

	return rule && rule->allow ? rule : NULL;
}

static void append(struct facts *out, const char *text)
{
	facts_append(out, text, strlen(text));
}

/* What the line says beside the place, and the line's end. Of tracepoints only what is unusual: they have no arguments. */
static void list_conditions(const struct policy_rule *rule, struct facts *out)
{
	static const char *const fetches[] = { " fetch=none", " fetch=registers", " fetch=memory" };
	char rate[32] = "";

	if (rule->place != POLICY_TRACEPOINT)
		append(out, fetches[rule->fetch]);
	if (rule->own || rule->place != POLICY_TRACEPOINT)
		append(out, rule->own ? " scope=own" : " scope=all");
	if (rule->rate)
		(void)snprintf(rate, sizeof(rate), " rate=%u", rule->rate);
	append(out, rate);
	append(out, rule->semaphore ? " semaphore=yes" : "");
	append(out, rule->addresses ? " kernel-addresses=yes\n" : "\n");
}

static void list_events(const struct policy *policy, const struct policy_identity *identity,
	const struct facts *events, struct facts *out)
{
	const char *end = events->data + events->size, *stop;
	const struct policy_rule *rule;
	char event[2 * CONTROL_NAME_MAX];

	for (const char *line = events->data; line < end; line = stop + 1) {
		stop = memchr(line, '\n', (size_t)(end - line));
		if (!stop)
			return;
		(void)snprintf(event, sizeof(event), "%.*s", (int)(stop - line), line);
		rule = allowing(policy, identity, event);
		if (!rule)
			continue;
		facts_append(out, line, (size_t)(stop - line));
		list_conditions(rule, out);
	}
}

static void list_place(const struct policy_rule *rule, struct facts *out)
{
	static const char *const kinds[] = {
		[POLICY_KPROBE] = "kprobe:", [POLICY_UPROBE] = "uprobe:", [POLICY_USDT] = "usdt:"
	};

	facts_append(out, kinds[rule->place], strlen(kinds[rule->place]));
	facts_append(out, rule->pattern, strlen(rule->pattern));
	list_conditions(rule, out);
}

int admission_list(const struct policy *policy, const struct policy_identity *identity,
	const struct facts *events)
{
	struct facts out = { 0 };
	int fd;

	if (policy->replay || !policy->path || identity->uid == 0)
		return facts_blob(events, "tracefan-events");
	list_events(policy, identity, events, &out);
	for (size_t i = 0; i < policy->rule_count; i++) {
		const struct policy_rule *rule = &policy->rules[i];

		if (rule->allow && rule->place != POLICY_TRACEPOINT &&
			policy_concerns(&rule->subject, identity))
			list_place(rule, &out);
	}
	fd = facts_blob(&out, "tracefan-events");
	facts_release(&out);
	return fd;
}
