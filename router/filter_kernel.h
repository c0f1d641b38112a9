/* What writes a filter for the kernel, between filter_kernel.c (numbers and logic) and
 * filter_kernel_string.c. */
#ifndef TRACEFAN_ROUTER_FILTER_KERNEL_H
#define TRACEFAN_ROUTER_FILTER_KERNEL_H

#include "router/filter_out.h"
#include "router/filter_program.h"

struct kernel_writer {
	struct filter_out out;
	size_t most; /* terms that one set or list may have; beyond, it is coarsened */
	bool exact;  /* nothing was widened yet */
	int error;
};

/* Whether something was written, or "true" is all that can be said. */
enum kernel_written { KERNEL_TEXT, KERNEL_ALL };

static inline enum kernel_written kernel_widen(struct kernel_writer *writer)
{
	writer->exact = false;
	return KERNEL_ALL;
}

enum kernel_written filter_kernel_strings(
	struct kernel_writer *writer, const struct filter_pred *pred);
enum kernel_written filter_kernel_pattern(
	struct kernel_writer *writer, const struct filter_pred *pred);

#endif
