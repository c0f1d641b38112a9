#include "consumers/client/consumers.h"

#include "consumers/client/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More than any session has; a router that goes on for ever is not believed. */
#define ROWS_MAX (1U << 18)

struct consumer_list {
	struct control_status_row *rows; /* what the texts point to */
	size_t row_count, row_room;
	struct tfan_consumer *consumers;
	struct tfan_consumer_trace *traces;
	size_t consumer_count;
	bool readerless;
};

void consumer_list_free(struct consumer_list *list)
{
	if (!list)
		return;
	free(list->rows);
	free(list->consumers);
	free(list->traces);
	free(list);
}

static int add_rows(struct consumer_list *list, const struct control_status_page *page)
{
	struct control_status_row *rows = list->rows;

	if (list->row_count + page->count > ROWS_MAX)
		return -EPROTO;
	if (list->row_count + page->count > list->row_room) {
		list->row_room = 2 * list->row_room + CONTROL_STATUS_ROWS;
		rows = realloc(rows, list->row_room * sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		list->rows = rows;
	}
	if (page->count && rows)
		memcpy(rows + list->row_count, page->rows, page->count * sizeof(*rows));
	list->row_count += page->count;
	return 0;
}

/* Each page has to lead on: numbers of consumers fall, places among one's traces rise. */
static bool leads_on(const struct control_status_from *from, const struct control_status_page *page)
{
	if (page->next_consumer == from->consumer)
		return page->next_skip > from->skip;
	return from->consumer == 0 || page->next_consumer < from->consumer;
}

/* Returns 1 (there is another page, which `from` names), 0 or -errno. */
static int ask_page(struct tfan *tfan, struct consumer_list *list, struct control_status_from *from)
{
	struct control_message reply;
	const struct control_status_page *page = (const struct control_status_page *)reply.bytes;
	int rc = connection_call(tfan, CONTROL_STATUS, from, sizeof(*from), -1, &reply);

	if (rc)
		return rc;
	if (page->status != 0) {
		rc = failure_take(&tfan->failure, page->status, &page->failure);
	} else {
		rc = page->next_consumer == 0 || leads_on(from, page) ? add_rows(list, page) : -EPROTO;
		if (rc < 0)
			rc = connection_failed(tfan, rc);
		else
			rc = page->next_consumer != 0;
		list->readerless = page->readerless;
		from->consumer = page->next_consumer;
		from->skip = page->next_skip;
	}
	control_message_release(&reply);
	return rc;
}

static void take_trace(struct tfan_consumer *consumer, struct tfan_consumer_trace *trace, const struct control_status_row *row)
{
	*trace = (struct tfan_consumer_trace){
		.id = row->trace_id,
		.name = row->name,
		.enabled = row->enabled,
		.ledger = {
			.decoded = row->ledger.decoded,
			.delivered = row->ledger.delivered,
			.filtered = row->ledger.filtered,
			.lost_ring = row->ledger.lost_ring,
			.missed = row->ledger.missed,
			.gave_up = row->ledger.gave_up,
			.kept_known = row->ledger.kept_away != LEDGER_UNKNOWN,
			.kept_away = row->ledger.kept_away != LEDGER_UNKNOWN ? row->ledger.kept_away : 0,
		},
	};
	consumer->trace_count++;
}

static void take_consumer(struct tfan_consumer *consumer, const struct tfan_consumer_trace *traces,
	const struct control_status_row *row)
{
	*consumer = (struct tfan_consumer){
		.number = row->consumer,
		.uid = row->uid,
		.pid = row->pid,
		.program = row->program,
		.ring_size = row->ring_capacity,
		.ring_used = row->ring_used,
		.overflow = row->overflow == RING_OVERWRITE ? TFAN_OVERWRITE : TFAN_DROP,
		.is_self = row->own,
		.traces = traces,
	};
}

/* A consumer's rows follow each other. */
static int group_rows(struct consumer_list *list)
{
	struct tfan_consumer *consumer = NULL;
	size_t traces = 0;

	list->consumers = calloc(list->row_count + 1, sizeof(*list->consumers));
	list->traces = calloc(list->row_count + 1, sizeof(*list->traces));
	if (!list->consumers || !list->traces)
		return -ENOMEM;
	for (size_t i = 0; i < list->row_count; i++) {
		const struct control_status_row *row = &list->rows[i];

		if (!consumer || consumer->number != row->consumer) {
			consumer = &list->consumers[list->consumer_count++];
			take_consumer(consumer, &list->traces[traces], row);
		}
		if (row->trace_id)
			take_trace(consumer, &list->traces[traces++], row);
	}
	return 0;
}

int tfan_consumers(struct tfan *tfan, const struct tfan_consumer **ret, size_t *ret_count, bool *ret_readerless)
{
	struct consumer_list *list = calloc(1, sizeof(*list));
	struct control_status_from from = { .consumer = 0 };
	int rc = list ? 1 : failure_set(&tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");

	while (rc == 1)
		rc = ask_page(tfan, list, &from);
	if (rc == 0 && group_rows(list) < 0)
		rc = failure_set(&tfan->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	if (rc) {
		consumer_list_free(list);
		return rc;
	}
	consumer_list_free(tfan->consumers);
	tfan->consumers = list;
	*ret = list->consumers;
	*ret_count = list->consumer_count;
	if (ret_readerless)
		*ret_readerless = list->readerless;
	return 0;
}
