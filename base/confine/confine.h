/* What the two mechanisms of confinement share: what to do where the kernel lacks one of them. */
#ifndef TRACEFAN_BASE_CONFINE_CONFINE_H
#define TRACEFAN_BASE_CONFINE_CONFINE_H

enum confine_mode {
	CONFINE_BEST_EFFORT, /* go on without it, and say so */
	CONFINE_REQUIRE,     /* refuse to run */
};

/* "best-effort" or "require". Returns 0 or -EINVAL. */
int confine_mode_parse(const char *text, enum confine_mode *ret);

/* Logs that `what` can't be had here because of `error` (-errno). Returns 0 where that may be, else
 * `error`. */
int confine_lacks(enum confine_mode mode, const char *what, int error);

#endif
