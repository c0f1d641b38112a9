#include "reader/probe_stacks.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "shm/control.h"

#include <errno.h>

/* The instance writes stacks behind all its events or none. A trigger would write them behind one
 * event's alone, but also behind those that its filter leaves out, and they may be most. */
static const struct {
	uint32_t flag;
	const char *option;
} options[] = {
	{ CREATE_KERNEL_STACK, "options/stacktrace" },
	{ CREATE_USER_STACK, "options/userstacktrace" },
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

void probe_stacks_read(struct probes *probes)
{
	for (size_t i = 0; i < OPTIONS; i++) {
		CLEANUP_FREE char *text = NULL;

		if (tracedir_read(probes->instance->dir, options[i].option, &text, NULL) == 0 && text[0] == '1')
			probes->stacks |= options[i].flag;
	}
}

int probe_stacks_switch(struct probes *probes, uint32_t more)
{
	uint32_t wanted = more;
	int result = 0;

	for (const struct probe *probe = probes->first; probe; probe = probe->next)
		wanted |= probe->enabled ? probe->stacks : 0;
	for (size_t i = 0; i < OPTIONS; i++) {
		bool on = wanted & options[i].flag;
		int r;

		if (on == !!(probes->stacks & options[i].flag))
			continue;
		r = tracedir_write(probes->instance->dir, options[i].option, on ? "1" : "0");
		if (r < 0)
			result = r;
		else
			probes->stacks ^= options[i].flag;
	}
	return result;
}

int probe_stacks_check(const struct probes *probes, const struct control_create *create,
	struct control_failure *ret_failure)
{
	if (!(create->flags & CREATE_STACKS) || !probes->guards_strings)
		return EXIT_DONE;
	control_failure_set(ret_failure, EOPNOTSUPP, -1,
		"stacks come with events from the binary files only: this session reads text (source)");
	return EXIT_MISSING;
}
