#include "router/consumer_status.h"

#include "router/answer.h"
#include "router/router.h"

#include <string.h>

/* What one request may cost is a page and a walk along the consumers: the data path waits for no more. */

static void put_consumer(struct control_status_row *row, const struct consumer *consumer)
{
	*row = (struct control_status_row){
		.consumer = consumer->number,
		.ring_capacity = consumer->outlet.ring.capacity,
		.ring_used = ring_writer_fill(&consumer->outlet.ring),
		.pid = consumer->pid,
		.uid = consumer->uid,
		.overflow = consumer->overflow,
	};
	memcpy(row->program, consumer->program, sizeof(row->program));
}

static void put_trace(struct control_status_row *row, const struct trace *trace)
{
	_Static_assert(sizeof(row->name) == sizeof(trace->name), "names fit");
	row->trace_id = trace->id;
	row->ledger = fanout_trace_ledger(trace);
	row->enabled = trace->enabled;
	memcpy(row->name, trace->name, sizeof(row->name));
}

/* The consumer's traces behind the first `skip`, or itself where it has none. False: the page is full, and goes on there. */
static bool put_traces(struct control_status_page *page, const struct consumer *consumer, uint64_t skip, bool own)
{
	uint64_t place = 0;

	for (unsigned int i = 0; i < OUTLET_LISTS; i++) {
		for (const struct trace *trace = consumer->outlet.traces[i]; trace; trace = trace->next_of_outlet, place++) {
			if (place < skip)
				continue;
			if (page->count == CONTROL_STATUS_ROWS) {
				page->next_skip = place;
				return false;
			}
			put_consumer(&page->rows[page->count], consumer);
			put_trace(&page->rows[page->count], trace);
			page->rows[page->count++].own = own;
		}
	}
	if (place == 0 && page->count == CONTROL_STATUS_ROWS)
		return false;
	if (place == 0) {
		put_consumer(&page->rows[page->count], consumer);
		page->rows[page->count++].own = own;
	}
	return true;
}

static bool is_shown(const struct consumer *consumer, uid_t uid)
{
	return consumer->state == CONSUMER_READY && consumer->has_outlet && (uid == 0 || uid == consumer->uid);
}

void consumer_on_status(struct router *router, struct consumer *consumer, struct control_message *message)
{
	const struct control_status_from *from = (const struct control_status_from *)message->bytes;
	struct control_status_page page = { .readerless = router->takeover.waiting };

	page.failure.position = -1;
	/* The latest first, so that their numbers fall. */
	for (const struct consumer *c = router->consumers; c; c = c->next) {
		if (!is_shown(c, consumer->uid) || (from->consumer && c->number > from->consumer))
			continue;
		if (!put_traces(&page, c, c->number == from->consumer ? from->skip : 0, c == consumer)) {
			page.next_consumer = c->number;
			break;
		}
	}
	answer_send(router, consumer, &page, CONTROL_STATUS, sizeof(page), message->header.cookie, NULL, 0);
}
