/* What a well-formed message of each type is: one row per type and direction. */
#include "shm/control.h"

#include "base/checked.h"
#include "base/exit_status.h"
#include "shm/ring_abi.h"
#include "shm/state_abi.h"

#include <errno.h>
#include <string.h>

/* A text: NUL-terminated inside its array. */
struct text_rule {
	uint16_t offset;
	uint16_t size;
};

/* A 32-bit member that may only be min..max. */
struct value_rule {
	uint16_t offset;
	/* Holds of replies only when they report success. */
	bool success_only;
	uint32_t min, max;
};

#define TEXTS_MAX  8
#define VALUES_MAX 8

struct layout {
	uint32_t size; /* exact */
	bool has_status;
	struct text_rule texts[TEXTS_MAX]; /* up to the first with size 0 */
	struct value_rule values[VALUES_MAX]; /* up to the first with offset 0 */
};

#define MEMBER_SIZE(type, member) sizeof(((struct type *)NULL)->member)
#define TEXT(type, member)        { offsetof(struct type, member), MEMBER_SIZE(type, member) }
#define VALUE(type, member, low, high) \
	{ .offset = offsetof(struct type, member), .min = (low), .max = (high) }
#define SUCCESS_VALUE(type, member, low, high) \
	{ .offset = offsetof(struct type, member), .success_only = true, .min = (low), .max = (high) }
#define ZERO(type, member) VALUE(type, member, 0, 0)
/* Both halves of a 64-bit member. */
#define ZERO64(type, member) \
	{ .offset = offsetof(struct type, member) }, { .offset = offsetof(struct type, member) + sizeof(uint32_t) }
/* The members that every reply begins and fails with. */
#define STATUS(type) VALUE(type, status, EXIT_DONE, EXIT_LOST)

#define SESSION_FLAGS (SESSION_RECORDED | SESSION_FALLBACK | SESSION_LASTING | SESSION_TAKEN_OVER)
#define ATTACH_FLAGS  (ATTACH_ALL_EVENTS | ATTACH_INCLUDE_SELF | ATTACH_RESUME | ATTACH_HOLD | ATTACH_PROCESS)

static const struct layout layout_empty = { .size = sizeof(struct control_router_hello) };
static const struct layout layout_id = { .size = sizeof(struct control_id) };
static const struct layout layout_hello = {
	.size = sizeof(struct control_hello),
	.texts = { TEXT(control_hello, program) },
};
static const struct layout layout_attach = {
	.size = sizeof(struct control_attach),
	.values = {
		VALUE(control_attach, overflow, RING_DROP, RING_OVERWRITE),
		VALUE(control_attach, flags, 0, ATTACH_FLAGS),
		ZERO(control_attach, reserved0),
		ZERO64(control_attach, reserved[0]),
		ZERO64(control_attach, reserved[1]),
	},
};
static const struct layout layout_create = {
	.size = sizeof(struct control_create),
	.texts = {
		TEXT(control_create, name),
		TEXT(control_create, system),
		TEXT(control_create, event),
		TEXT(control_create, symbol),
		TEXT(control_create, path),
		TEXT(control_create, filter),
	},
	.values = {
		VALUE(control_create, kind, PROBE_TRACEPOINT, PROBE_EVENT),
		VALUE(control_create, flags, 0, CREATE_LENIENT | CREATE_STACKS),
	},
};
static const struct layout layout_set_filter = {
	.size = sizeof(struct control_set_filter),
	.texts = { TEXT(control_set_filter, filter) },
};
static const struct layout layout_set_enabled = {
	.size = sizeof(struct control_set_enabled),
	.values = { VALUE(control_set_enabled, enabled, 0, 1), ZERO(control_set_enabled, reserved) },
};
static const struct layout layout_capture = {
	.size = sizeof(struct control_capture),
	.values = { VALUE(control_capture, what, 1, STATE_WANT_ALL), ZERO(control_capture, reserved) },
};
static const struct layout layout_rundown = {
	.size = sizeof(struct control_rundown),
	.values = {
		VALUE(control_rundown, what, 1, STATE_WANT_ALL),
		VALUE(control_rundown, id_count, 0, CONTROL_RUNDOWN_IDS),
	},
};
static const struct layout layout_consumer = {
	.size = sizeof(struct control_consumer),
	.values = {
		VALUE(control_consumer, state, CONSUMER_ATTACHED, CONSUMER_LEFT),
		VALUE(control_consumer, flags, 0, ATTACH_FLAGS),
	},
};
static const struct layout layout_router_welcome = {
	.size = sizeof(struct control_router_welcome),
	.has_status = true,
	.texts = {
		TEXT(control_router_welcome, failure.message),
		TEXT(control_router_welcome, session),
		TEXT(control_router_welcome, group),
		TEXT(control_router_welcome, tag),
	},
	.values = {
		STATUS(control_router_welcome),
		SUCCESS_VALUE(control_router_welcome, source, SOURCE_RAW, SOURCE_TEXT),
		VALUE(control_router_welcome, flags, 0, SESSION_FLAGS),
		ZERO(control_router_welcome, reserved),
	},
};

static const struct layout layout_status = {
	.size = sizeof(struct control_status),
	.has_status = true,
	.texts = { TEXT(control_status, failure.message) },
	.values = { STATUS(control_status), ZERO(control_status, reserved) },
};
static const struct layout layout_welcome = {
	.size = sizeof(struct control_welcome),
	.has_status = true,
	.texts = { TEXT(control_welcome, failure.message), TEXT(control_welcome, session) },
	.values = {
		STATUS(control_welcome),
		SUCCESS_VALUE(control_welcome, source, SOURCE_RAW, SOURCE_TEXT),
		VALUE(control_welcome, flags, 0, SESSION_FLAGS | SESSION_READERLESS),
		ZERO(control_welcome, reserved),
	},
};
static const struct layout layout_attached = {
	.size = sizeof(struct control_attached),
	.has_status = true,
	.texts = { TEXT(control_attached, failure.message) },
	.values = { STATUS(control_attached), ZERO(control_attached, reserved) },
};
static const struct layout layout_created = {
	.size = sizeof(struct control_created),
	.has_status = true,
	.texts = { TEXT(control_created, failure.message) },
	.values = { STATUS(control_created), ZERO(control_created, reserved) },
};
static const struct layout layout_probe_created = {
	.size = sizeof(struct control_probe_created),
	.has_status = true,
	.texts = {
		TEXT(control_probe_created, system),
		TEXT(control_probe_created, event),
		TEXT(control_probe_created, failure.message),
	},
	.values = {
		STATUS(control_probe_created),
		VALUE(control_probe_created, shared, 0, 1),
		VALUE(control_probe_created, scope, SCOPE_ALL, SCOPE_OWN),
	},
};
static const struct layout layout_probe_close = {
	.size = sizeof(struct control_probe_close),
	.values = { ZERO(control_probe_close, reserved) },
};
static const struct layout layout_stats = {
	.size = sizeof(struct control_stats),
	.has_status = true,
	.texts = { TEXT(control_stats, failure.message) },
	.values = { STATUS(control_stats), ZERO(control_stats, reserved) },
};
static const struct layout layout_ledger = {
	.size = sizeof(struct control_ledger),
	.has_status = true,
	.texts = { TEXT(control_ledger, failure.message) },
	.values = { STATUS(control_ledger), ZERO(control_ledger, reserved) },
};
static const struct layout layout_session_status = {
	.size = sizeof(struct control_session_status),
	.has_status = true,
	.texts = {
		TEXT(control_session_status, failure.message),
		TEXT(control_session_status, session),
		TEXT(control_session_status, instance),
	},
	.values = {
		STATUS(control_session_status),
		SUCCESS_VALUE(control_session_status, source, SOURCE_RAW, SOURCE_TEXT),
		VALUE(control_session_status, flags, 0, SESSION_FLAGS),
	},
};

static const struct layout layout_probe_keep = {
	.size = sizeof(struct control_probe_keep),
	.values = { VALUE(control_probe_keep, enabled, 0, 1), ZERO(control_probe_keep, reserved) },
};
static const struct layout layout_heir = {
	.size = sizeof(struct control_heir),
	.has_status = true,
	.texts = { TEXT(control_heir, failure.message) },
	.values = { STATUS(control_heir), ZERO(control_heir, reserved) },
};

static const struct layout layout_explained = {
	.size = sizeof(struct control_explained),
	.has_status = true,
	.texts = {
		TEXT(control_explained, failure.message),
		TEXT(control_explained, kernel),
		TEXT(control_explained, router),
		TEXT(control_explained, pushed),
	},
	.values = { STATUS(control_explained), VALUE(control_explained, exact, 0, 1) },
};

static const struct layout layout_status_from = { .size = sizeof(struct control_status_from) };
static const struct layout layout_status_page = {
	.size = sizeof(struct control_status_page),
	.has_status = true,
	.texts = { TEXT(control_status_page, failure.message) },
	.values = {
		STATUS(control_status_page),
		VALUE(control_status_page, count, 0, CONTROL_STATUS_ROWS),
		VALUE(control_status_page, readerless, 0, 1),
		ZERO(control_status_page, reserved),
	},
};

struct row {
	uint16_t type;
	const struct layout *request;
	uint8_t fds_min, fds_max;
	const struct layout *reply; /* NULL: none */
	uint8_t reply_fds;          /* of a reply that reports success; a failure has none */
};

static const struct row rows[] = {
	{ CONTROL_HELLO, &layout_hello, 0, 0, &layout_welcome, 0 },
	{ CONTROL_ATTACH, &layout_attach, 0, 0, &layout_attached, 3 },
	{ CONTROL_CREATE, &layout_create, 0, 1, &layout_created, 0 },
	{ CONTROL_SCHEMA, &layout_id, 0, 0, &layout_status, 1 },
	{ CONTROL_SET_FILTER, &layout_set_filter, 0, 0, &layout_status, 0 },
	{ CONTROL_SET_SHARED, &layout_set_filter, 0, 0, &layout_status, 0 },
	{ CONTROL_SET_ENABLED, &layout_set_enabled, 0, 0, &layout_status, 0 },
	{ CONTROL_STATS, &layout_id, 0, 0, &layout_stats, 0 },
	{ CONTROL_CLOSE, &layout_id, 0, 0, &layout_status, 0 },
	{ CONTROL_LIST, &layout_id, 0, 0, &layout_status, 1 },
	{ CONTROL_FLUSH, &layout_id, 0, 0, &layout_status, 0 },
	{ CONTROL_DETACH, &layout_id, 0, 0, &layout_status, 0 },
	{ CONTROL_LEDGER, &layout_id, 0, 0, &layout_ledger, 0 },
	{ CONTROL_EXPLAIN, &layout_id, 0, 0, &layout_explained, 0 },
	{ CONTROL_STATUS, &layout_status_from, 0, 0, &layout_status_page, 0 },
	{ CONTROL_RESUMED, &layout_id, 0, 0, &layout_status, 0 },
	{ CONTROL_CAPTURE, &layout_capture, 0, 0, &layout_status, 2 },
	{ CONTROL_ROOM, &layout_id, 0, 0, &layout_status, 0 },

	{ CONTROL_ROUTER, &layout_empty, 0, 0, &layout_router_welcome, 7 },
	/* The consumer's socket and the target file; neither for the router's own probes. */
	{ CONTROL_PROBE_CREATE, &layout_create, 0, 2, &layout_probe_created, 1 },
	{ CONTROL_PROBE_ENABLE, &layout_set_enabled, 0, 0, &layout_status, 0 },
	{ CONTROL_PROBE_FILTER, &layout_set_filter, 0, 0, &layout_status, 0 },
	{ CONTROL_PROBE_CLOSE, &layout_probe_close, 0, 0, &layout_status, 0 },
	{ CONTROL_ACCOUNT, &layout_id, 0, 0, &layout_status, 1 },
	{ CONTROL_READER_FLUSH, &layout_id, 0, 0, &layout_status, 0 },
	{ CONTROL_READER_LIST, &layout_id, 1, 1, &layout_status, 1 },
	{ CONTROL_CONSUMER, &layout_consumer, 1, 1, &layout_status, 0 },
	{ CONTROL_RUNDOWN, &layout_rundown, 0, 1, &layout_status, 2 },
	{ CONTROL_PROBE_KEEP, &layout_probe_keep, 0, 0, &layout_status, 0 },

	{ CONTROL_READER, &layout_id, 0, 0, &layout_heir, 1 },
	{ CONTROL_READER_END, &layout_id, 0, 0, &layout_status, 0 },

	{ CONTROL_SESSION_STATUS, &layout_id, 0, 0, &layout_session_status, 0 },
	{ CONTROL_SESSION_STOP, &layout_id, 0, 0, &layout_status, 0 },
	{ CONTROL_SESSION_FLUSH, &layout_id, 0, 0, &layout_status, 0 },
};

static const struct row *find_row(uint16_t type)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].type == type)
			return &rows[i];
	return NULL;
}

static uint32_t load_value(const struct control_message *message, size_t offset)
{
	uint32_t value;

	memcpy(&value, message->bytes + offset, sizeof(value));
	return value;
}

static bool texts_valid(const struct layout *layout, const struct control_message *message)
{
	for (size_t i = 0; i < TEXTS_MAX && layout->texts[i].size; i++)
		if (!memchr(message->bytes + layout->texts[i].offset, 0, layout->texts[i].size))
			return false;
	return true;
}

static bool values_valid(const struct layout *layout, const struct control_message *message, bool success)
{
	for (size_t i = 0; i < VALUES_MAX && layout->values[i].offset; i++) {
		const struct value_rule *rule = &layout->values[i];
		uint32_t value;

		if (rule->success_only && !success)
			continue;
		value = load_value(message, rule->offset);
		if (value < rule->min || value > rule->max)
			return false;
	}
	return true;
}

/* `fetch` holds as many texts as it says. */
static bool fetch_valid(const struct control_create *create)
{
	const char *at = create->fetch;
	const char *end = create->fetch + sizeof(create->fetch);

	for (uint32_t i = 0; i < create->fetch_count; i++) {
		const char *stop = memchr(at, 0, (size_t)(end - at));

		if (!stop || stop == at)
			return false;
		at = stop + 1;
	}
	return true;
}

static bool rows_valid(const struct control_status_page *page)
{
	for (uint32_t i = 0; i < page->count; i++) {
		const struct control_status_row *row = &page->rows[i];

		if (!memchr(row->program, 0, sizeof(row->program)) || !memchr(row->name, 0, sizeof(row->name)))
			return false;
		if (row->overflow > RING_OVERWRITE || row->enabled > 1 || row->own > 1 || row->reserved)
			return false;
	}
	return true;
}

int control_check(const struct control_message *message)
{
	const bool is_reply = message->header.type & CONTROL_REPLY;
	const struct row *row = find_row(message->header.type & (uint16_t)~CONTROL_REPLY);
	const struct layout *layout;
	unsigned int fds_min, fds_max;
	bool success = true;

	layout = row ? (is_reply ? row->reply : row->request) : NULL;
	if (!layout || message->header.size != layout->size || message->header.version != CONTROL_VERSION)
		return -EBADMSG;
	/* Every layout with a status has it right behind the header. */
	if (layout->has_status)
		success = load_value(message, offsetof(struct control_status, status)) == EXIT_DONE;
	fds_min = is_reply ? row->reply_fds : row->fds_min;
	fds_max = is_reply ? row->reply_fds : row->fds_max;
	if (!success)
		fds_min = fds_max = 0;
	if (message->fd_count < fds_min || message->fd_count > fds_max)
		return -EBADMSG;
	if (!texts_valid(layout, message) || !values_valid(layout, message, success))
		return -EBADMSG;
	if (layout == &layout_status_page && !rows_valid((const void *)message->bytes))
		return -EBADMSG;
	if (layout == &layout_create && !fetch_valid((const void *)message->bytes))
		return -EBADMSG;
	return 0;
}
