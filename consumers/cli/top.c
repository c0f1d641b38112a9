#include "consumers/cli/top.h"

#include "consumers/cli/monotonic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int top_make(struct top *top, const struct tfan *tfan)
{
	*top = (struct top){ 0 };
	while (tfan_trace_at(tfan, top->count))
		top->count++;
	top->rows = calloc(top->count + 1, sizeof(*top->rows));
	if (!top->rows)
		return -ENOMEM;
	for (size_t i = 0; i < top->count; i++)
		top->rows[i].trace = tfan_trace_at(tfan, i);
	return 0;
}

void top_release(struct top *top)
{
	free(top->rows);
	*top = (struct top){ 0 };
}

static int compare(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	if (x->rate != y->rate)
		return x->rate < y->rate ? 1 : -1;
	if (x->ledger.decoded != y->ledger.decoded)
		return x->ledger.decoded < y->ledger.decoded ? 1 : -1;
	return strcmp(tfan_trace_name(x->trace), tfan_trace_name(y->trace));
}

int top_look(struct top *top, struct tfan *tfan, uint64_t now)
{
	uint64_t span = top->time ? now - top->time : 0;
	int r = 0;

	for (size_t i = 0; i < top->count && r == 0; i++) {
		struct top_row *row = &top->rows[i];

		/* Asking changes nothing of the trace that is seen. */
		r = tfan_trace_ledger((struct tfan_trace *)row->trace, &row->ledger);
		row->rate = span ? (uint64_t)((double)(row->ledger.decoded - row->before) * (double)MONOTONIC_SECOND / (double)span) : 0;
		row->before = row->ledger.decoded;
	}
	if (r == 0)
		r = tfan_session_ledger(tfan, &top->session);
	top->time = now;
	qsort(top->rows, top->count, sizeof(*top->rows), compare);
	return r;
}
