#include "reader/reader_start.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "base/time_namespace.h"
#include "reader/identity.h"
#include "reader/policy_file.h"
#include "reader/standing.h"
#include "reader/successor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes of a replay's pool. */
#define REPLAY_POOL (UINT64_C(64) << 20)
/* What one read of trace_pipe brings at most. */
#define TEXT_SLOT 8192
/* Watches beside the CPUs': listeners, signals, owner, slots, hotplug, router, operators, helper. */
#define WATCHES_MORE 17

int reader_fail(struct reader *reader, int status, int error, const char *what)
{
	log_error("%s: %s", what, strerror(error < 0 ? -error : error));
	reader->status = status;
	return error;
}

static int tell(struct reader *reader, const struct tracedir_problem *problem, int error)
{
	log_error("%s", problem->message);
	reader->status = problem->status;
	return error;
}

static int start_directory(struct reader *reader)
{
	struct session_dir_owners owners = { .router = reader->router_uid,
		.group = SESSION_DIR_NO_GROUP };
	struct sockaddr_un address = { 0 };
	socklen_t size = sizeof(address) - 1;
	struct tracedir_problem problem;
	int r = session_dir_open(
		reader->options->directory, reader->options->session, &reader->dir, &problem);

	if (reader->policy.has_group)
		owners.group = reader->policy.group;
	owners.everybody = reader->policy.path != NULL;
	if (!r && successor_possible(reader)) {
		r = successor_greet(reader);
		if (r < 0)
			return r;
		reader->adopted = r > 0;
		r = 0;
	}
	if (!r)
		r = session_dir_listen(&reader->dir, &owners, &problem);
	if (r < 0)
		return tell(reader, &problem, r);
	/* What the kernel says of the listener is what it will say of each connection. */
	if (getsockname(reader->dir.consumers, (struct sockaddr *)&address, &size) < 0)
		return reader_fail(reader, EXIT_FAILED, -errno, "consumers' socket");
	memcpy(reader->consumers_path, address.sun_path, sizeof(reader->consumers_path));
	return 0;
}

static int create_instance(struct reader *reader, int root)
{
	const struct instance_wish wish = { .buffer_size = reader->options->buffer_size,
		.subbuf_size = reader->options->subbuf_size };
	struct tracedir_problem problem;
	int r = instance_create(root, reader->options->session, &wish, &reader->instance, &problem);

	if (r < 0)
		return tell(reader, &problem, r);
	reader->has_instance = true;
	r = live_open(&reader->live, &reader->instance, reader->options->session,
		reader->options->source == OPTIONS_TEXT, reader->helper.process, &reader->legacy);
	if (r < 0)
		return reader_fail(reader, EXIT_FAILED, r, "probes");
	reader->provider = &reader->live.provider;
	reader->provider->source =
		reader->options->source == OPTIONS_TEXT ? SOURCE_TEXT : SOURCE_RAW;
	return 0;
}

static int start_instance(struct reader *reader)
{
	struct tracedir_problem problem;
	int root = tracedir_open(reader->options->tracefs, &problem), r;

	if (root < 0)
		return tell(reader, &problem, root);
	r = reader->adopted ? successor_adopt(reader, root) : create_instance(reader, root);
	if (r < 0 && !reader->has_instance)
		(void)close_fd(root);
	return r;
}

/* A few slots per CPU at least: less would make every CPU wait for every other. */
static int start_pool(struct reader *reader, uint32_t slot_size, uint32_t cpus)
{
	uint64_t count = reader->options->pool_size / slot_size, least = 4 * (uint64_t)cpus;
	int r;

	if (least > POOL_SLOT_COUNT_MAX)
		least = POOL_SLOT_COUNT_MAX;
	if (count < least || count > POOL_SLOT_COUNT_MAX) {
		count = count < least ? least : POOL_SLOT_COUNT_MAX;
		log_note("the pool has %llu slots of %u bytes: at least 4 per CPU, at most %u",
			(unsigned long long)count, slot_size, POOL_SLOT_COUNT_MAX);
	}
	r = pool_writer_create((uint32_t)count, slot_size, &reader->pool);
	if (r < 0)
		return reader_fail(reader, EXIT_FAILED, r, "slot pool");
	reader->has_pool = true;
	r = reader->adopted ? pool_writer_carry(&reader->pool, &reader->inherited_counters) : 0;
	return r < 0 ? reader_fail(reader, EXIT_FAILED, r, "slot pool") : 0;
}

static int open_source(struct reader *reader, bool uring)
{
	int r = loop_open(uring, reader->instance.cpu_count + WATCHES_MORE, &reader->loop);

	if (r < 0)
		return r;
	if (reader->options->source == OPTIONS_TEXT)
		r = source_text_open(&reader->instance, reader->provider->tag, &reader->loop,
			&reader->pool, reader->options->interval, reader->adopted, &reader->source);
	else
		r = source_raw_open(&reader->instance, &reader->loop, &reader->pool,
			reader->options->interval, reader->adopted, &reader->source);
	if (r < 0)
		loop_close(&reader->loop);
	return r;
}

/* The kernel gives a ring as many workers as its user may have processes, and what is handed to one waits for it:
 * with none for ever. */
static void look_for_workers(struct reader *reader)
{
	struct rlimit limit;

	if (reader->flags & SESSION_FALLBACK || getrlimit(RLIMIT_NPROC, &limit) < 0 || limit.rlim_cur > 0)
		return;
	log_warning("io_uring can't be used where the limit of processes is 0 (ulimit -u, LimitNPROC=): reading by poll and "
		    "read instead");
	reader->flags |= SESSION_FALLBACK;
}

static int start_source(struct reader *reader)
{
	bool text = reader->options->source == OPTIONS_TEXT;
	int r = start_pool(reader, text ? TEXT_SLOT : reader->instance.subbuf_size,
		reader->instance.cpu_count);

	if (r < 0)
		return r;
	look_for_workers(reader);
	r = open_source(reader, !(reader->flags & SESSION_FALLBACK));
	if (r < 0 && r != -EBUSY && !(reader->flags & SESSION_FALLBACK)) {
		log_warning("io_uring can't be used here (%s): reading by poll and read instead",
			strerror(-r));
		reader->flags |= SESSION_FALLBACK;
		r = open_source(reader, false);
	}
	if (r == -EBUSY)
		return reader_fail(reader, EXIT_BUSY, r, "reading of the instance");
	return r < 0 ? reader_fail(reader, r == -EPROTO ? EXIT_MISSING : EXIT_FAILED, r,
			       "reading of the instance")
		     : 0;
}

/* From here on another reader can take over. */
static int start_keeping(struct reader *reader)
{
	struct legacy_session session = { .source = reader->provider->source,
		.flags = reader->flags & SESSION_FALLBACK };
	int r;

	if (!successor_possible(reader))
		return 0;
	reader->flags |= SESSION_LASTING;
	if (reader->adopted) {
		reader->flags |= SESSION_TAKEN_OVER;
		return 0;
	}
	memcpy(session.tag, reader->provider->tag, sizeof(session.tag));
	r = legacy_make(reader->dir.dir, &session, &reader->legacy);
	return r < 0 ? reader_fail(reader, EXIT_FAILED, r, "the file \"" LEGACY_NAME "\" in the session's folder")
		     : 0;
}

static int open_replay(struct reader *reader, struct tracedir_problem *problem)
{
	const char *input = reader->options->input;

	switch (reader->options->source) {
	case OPTIONS_TEXT_FILE:
		return replay_text_open(input, &reader->replay, problem);
	case OPTIONS_PAGES:
		return replay_pages_open(input, &reader->replay, problem);
	default:
		return replay_recording_open(input, &reader->replay, problem);
	}
}

/* The recorded session's pool may have been large, and its entries come in an order that counts on
 * it. Slots cost memory only once they are used, and the last returned is used first. */
static uint32_t replay_slots(const struct reader *reader)
{
	uint64_t count = REPLAY_POOL / reader->replay->slot_size;

	return count > POOL_SLOT_COUNT_MAX ? POOL_SLOT_COUNT_MAX : (uint32_t)count;
}

static int start_replay(struct reader *reader)
{
	struct tracedir_problem problem;
	int r = open_replay(reader, &problem);

	if (r < 0)
		return tell(reader, &problem, r);
	recorded_open(&reader->recorded, reader->replay);
	reader->provider = &reader->recorded.provider;
	reader->policy.replay = true;
	r = pool_writer_create(replay_slots(reader), reader->replay->slot_size, &reader->pool);
	if (r < 0)
		return reader_fail(reader, EXIT_FAILED, r, "slot pool");
	reader->has_pool = true;
	/* Files are always ready, so there is nothing that a ring could wait for. */
	r = loop_open(false, WATCHES_MORE, &reader->loop);
	if (!r)
		r = source_file_open(reader->replay, &reader->recorded.asked, &reader->loop,
			&reader->pool, reader->options->interval, &reader->source);
	return r < 0 ? reader_fail(reader, EXIT_FAILED, r, "replay") : 0;
}

static bool is_live(const struct reader *reader)
{
	return reader->options->source == OPTIONS_RAW || reader->options->source == OPTIONS_TEXT;
}

/* A policy that can't be read in whole is none: what its author forbade might be left out. */
static int start_policy(struct reader *reader)
{
	const char *asked = reader->options->policy, *path = asked ? asked : POLICY_FILE_USUAL;
	struct policy_error error;
	struct policy file;
	int r;

	/* What is recorded is its owner's to show. */
	if (!is_live(reader) || (asked && !strcmp(asked, "none")))
		return 0;
	r = policy_file_read(path, geteuid(), &file, &error);
	if (r == -ENOENT && !asked)
		return 0;
	if (r < 0) {
		if (error.line)
			log_error("%s, line %u: %s", path, error.line, error.message);
		else
			log_error("%s: %s", path, error.message);
		reader->status = options_file_status(r);
		return r;
	}
	file.has_group = reader->policy.has_group;
	file.group = reader->policy.group;
	memcpy(file.group_name, reader->policy.group_name, sizeof(file.group_name));
	reader->policy = file;
	return 0;
}

/* Each is tried, so that a mistake shows before anybody uses it; then it waits outside of the kernel. A session that was
 * taken over may have them in use. */
static int try_standing(struct reader *reader, const struct standing *standing)
{
	const struct provider_ops *ops = reader->provider->ops;
	struct provider_created created = { .format = -1 };
	struct control_failure failure = { 0 };
	int status;

	if (reader->adopted)
		return 0;
	status = ops->create(reader->provider, &standing->create, standing->target, &created, &failure);
	if (status) {
		log_error("%s: line %d: %s", reader->options->config, standing->line, failure.message);
		reader->status = status;
		return -EINVAL;
	}
	(void)close_fd(created.format);
	(void)ops->close_probe(reader->provider, created.id, &failure);
	return 0;
}

static int start_standing(struct reader *reader)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < reader->options->standing_count; i++) {
		struct standing *standing = &reader->options->standing[i];

		r = standing_open(standing);
		if (r < 0) {
			log_error("%s: line %d: probe %s: %s: %s", reader->options->config, standing->line,
				standing->create.name, standing->create.path, strerror(-r));
			reader->status = EXIT_LOCATION;
			return r;
		}
		r = try_standing(reader, standing);
	}
	return r;
}

/* Events would be taken to lie before all that anybody asks for, or behind it. */
static int start_clock(struct reader *reader)
{
	if (!is_live(reader) || !time_namespace_ahead())
		return 0;
	log_error("the monotonic clock of this time namespace is not the kernel's, by which events are noted; start it outside: nsenter --time --target 1");
	reader->status = EXIT_MISSING;
	return -EOPNOTSUPP;
}

/* First of all, so that it has nothing of the session's. Without it the session works, and knows less. */
static int start_helper(struct reader *reader)
{
	int r;

	if (!is_live(reader) || geteuid() != 0)
		return 0;
	r = helper_start(&reader->helper, reader->router_uid, reader->options->confinement);
	if (r < 0)
		log_warning("no helper: %s; names and users of processes are not known", strerror(-r));
	return 0;
}

int reader_start(struct reader *reader)
{
	const char *missing = NULL;
	int r = identity_resolve(reader->options, &reader->router_uid, &reader->policy, &missing);

	if (r < 0) {
		if (r == -ENOENT && missing == reader->options->group)
			log_error("there is no group \"%s\": make it with \"groupadd --system %s\", or name another with --group",
				missing, missing);
		else if (r == -ENOENT)
			log_error("there is no user \"%s\": name another with --router-user", missing);
		else
			log_error("looking up %s: %s", missing, strerror(-r));
		reader->status = r == -ENOENT ? EXIT_USAGE : EXIT_FAILED;
		return r;
	}
	if (geteuid() == 0 && reader->router_uid == 0)
		log_warning("the router is to run as root: name a user of its own by router-user");
	r = start_clock(reader);
	if (!r)
		r = start_policy(reader);
	reader->policy.session = reader->options->session;
	if (strcmp(reader->options->directory, OPTIONS_DIRECTORY_USUAL) != 0)
		reader->policy.directory = reader->options->directory;
	if (!r)
		r = start_helper(reader);
	if (!r)
		r = start_directory(reader);
	if (!r && is_live(reader))
		r = start_instance(reader);
	if (!r && is_live(reader))
		r = start_standing(reader);
	if (!r)
		r = is_live(reader) ? start_source(reader) : start_replay(reader);
	if (!r)
		r = start_keeping(reader);
	return r;
}
