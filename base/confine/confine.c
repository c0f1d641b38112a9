#include "base/confine/confine.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

int confine_mode_parse(const char *text, enum confine_mode *ret)
{
	if (!strcmp(text, "best-effort"))
		*ret = CONFINE_BEST_EFFORT;
	else if (!strcmp(text, "require"))
		*ret = CONFINE_REQUIRE;
	else
		return -EINVAL;
	return 0;
}

int confine_lacks(enum confine_mode mode, const char *what, int error)
{
	if (mode == CONFINE_BEST_EFFORT) {
		log_note("going on without %s, which this kernel refuses: %s", what, strerror(-error));
		return 0;
	}
	log_error("this kernel refuses %s (%s), and confinement is required: allow it with "
		  "\"best-effort\"",
		what, strerror(-error));
	return error;
}
