/* Any bytes as a policy's file: parsed, and asked about users and places. What it refuses has a
 * line and words; what it takes answers each question the same way twice, and never for what it
 * doesn't name. */
#include "base/exit_status.h"
#include "reader/policy_glob.h"
#include "reader/policy_parse.h"
#include "tests/support/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void ask(const struct policy *policy, uid_t uid, const struct policy_wish *wish)
{
	const struct policy_identity identity = {
		.uid = uid, .groups = { uid, 100 }, .group_count = 2
	};
	const struct policy_rule *rule = policy_find(policy, &identity, wish);
	struct control_failure failure = { .message = "" }, admitted;
	struct policy_grant grant;
	int status = policy_decide(policy, &identity, wish, &grant, &failure);

	if (status != EXIT_DONE && status != EXIT_NOT_PERMITTED)
		abort();
	if (status != policy_decide(policy, &identity, wish, &grant, &failure))
		abort();
	if (!status && (!rule || !rule->allow || wish->fetch > rule->fetch ||
			       (wish->semaphore && !rule->semaphore) ||
			       (wish->addresses && !rule->addresses)))
		abort();
	/* Who may have a probe may attach. */
	if (!status && policy_admit(policy, &identity, &admitted) != EXIT_DONE)
		abort();
	if (status && (!*failure.message || (rule && !strstr(failure.message, "line "))))
		abort();
	if (!policy_limits_of(policy, &identity))
		abort();
}

static void ask_all(const struct policy *policy)
{
	static const char *const names[] = { "sched:sched_switch", "do_sys_openat2",
		"/opt/app/bin/server", "/usr/bin/passwd", "" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (unsigned int place = POLICY_TRACEPOINT; place <= POLICY_USDT; place++) {
			const struct policy_wish wish = { .place = (enum policy_place)place,
				.name = names[i],
				.fetch = (enum policy_fetch)(i % 3),
				.linked = i & 1,
				.semaphore = i == 2,
				.addresses = i & 2 };

			ask(policy, 1000, &wish);
			ask(policy, 7, &wish);
		}
	}
	for (size_t i = 0; i < policy->rule_count; i++) {
		const struct policy_rule *rule = &policy->rules[i];

		if (!rule->line || !*rule->pattern)
			abort();
		/* A name without a wildcard is its own. */
		if (policy_glob_is_exact(rule->pattern) &&
			!policy_glob(rule->pattern, rule->pattern))
			abort();
	}
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct policy_error error = { .message = "" };
	struct policy policy;
	int r = policy_parse("/etc/tracefan/policy", (const char *)bytes, size, &policy, &error);

	if (r == -EINVAL && !*error.message)
		abort();
	if (r < 0)
		return;
	ask_all(&policy);
	policy_release(&policy);
}
