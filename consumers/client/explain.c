/* Who does what of a filter, as the router says. */
#include "consumers/client/connection.h"
#include "consumers/client/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int tfan_trace_explain(struct tfan_trace *trace, struct tfan_explanation *ret)
{
	struct tfan *tfan = trace->tfan;
	struct control_id request = { .id = trace->parts[0]->id };
	struct control_message reply;
	const struct control_explained *explained = (const struct control_explained *)reply.bytes;
	int rc = connection_call(tfan, CONTROL_EXPLAIN, &request, sizeof(request), -1, &reply);

	if (rc)
		return rc;
	if (explained->status != 0) {
		rc = failure_take(&tfan->failure, explained->status, &explained->failure);
	} else {
		free(tfan->explained);
		tfan->explained = malloc(sizeof(*explained));
		if (tfan->explained) {
			memcpy(tfan->explained, explained, sizeof(*explained));
			*ret = (struct tfan_explanation){
				.kernel = tfan->explained->kernel,
				.exact = tfan->explained->exact,
				.router = tfan->explained->router,
				.pushed = tfan->explained->pushed,
			};
		} else {
			rc = failure_set(&tfan->failure, TFAN_FAILED, ENOMEM, -1, "no memory for the explanation");
		}
	}
	control_message_release(&reply);
	return rc;
}
