#include "reader/proc_text.h"

#include "base/digit.h"

#include <errno.h>
#include <string.h>

/* The kernel's task flags in field 9 of stat. */
#define FLAG_WORKER 0x20U
#define FLAG_KERNEL 0x200000U

/* ---- a reader of words ---- */

struct cursor {
	const char *at, *end;
};

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
		c->at++;
}

/* A number behind blanks. */
static bool take_number(struct cursor *c, unsigned int base, uint64_t *ret)
{
	uint64_t value = 0;
	const char *from;

	skip_blanks(c);
	for (from = c->at; c->at < c->end && digit_value(*c->at) < base; c->at++) {
		if (value > (UINT64_MAX - 15) / base)
			return false;
		value = value * base + digit_value(*c->at);
	}
	*ret = value;
	return c->at > from;
}

static bool take_char(struct cursor *c, char wanted)
{
	if (c->at == c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

static bool skip_word(struct cursor *c)
{
	const char *from;

	skip_blanks(c);
	for (from = c->at; c->at < c->end && *c->at != ' ' && *c->at != '\n'; c->at++)
		;
	return c->at > from;
}

static bool take_id(struct cursor *c, int32_t *ret)
{
	uint64_t value;

	if (!take_number(c, 10, &value) || value > INT32_MAX)
		return false;
	*ret = (int32_t)value;
	return true;
}

/* The next line, without its newline. */
static bool take_line(struct cursor *c, struct cursor *ret)
{
	const char *end;

	if (c->at == c->end)
		return false;
	end = memchr(c->at, '\n', (size_t)(c->end - c->at));
	ret->at = c->at;
	ret->end = end ? end : c->end;
	c->at = end ? end + 1 : c->end;
	return true;
}

static bool line_begins(struct cursor *line, const char *word)
{
	size_t size = strlen(word);

	if ((size_t)(line->end - line->at) < size || memcmp(line->at, word, size) != 0)
		return false;
	line->at += size;
	return true;
}

/* ---- stat, status, cgroup ---- */

/* /proc shows behind a worker's own name, "kworker/0:1", what it works on: "kworker/0:1-events". */
static size_t worker_name(const char *name, size_t size)
{
	const char *colon = memchr(name, ':', size);

	for (const char *at = colon; at && at < name + size; at++) {
		if (*at == '-' || *at == '+')
			return (size_t)(at - name);
	}
	return size;
}

static void take_comm(const char *name, size_t size, uint64_t flags, struct proc_stat *stat)
{
	if (flags & FLAG_WORKER)
		size = worker_name(name, size);
	memset(stat->comm, 0, sizeof(stat->comm));
	memcpy(stat->comm, name, size < sizeof(stat->comm) - 1 ? size : sizeof(stat->comm) - 1);
	stat->is_kernel = flags & FLAG_KERNEL;
}

int proc_stat_parse(const char *text, size_t size, struct proc_stat *ret)
{
	struct cursor c = { text, text + size };
	struct proc_stat stat = { 0 };
	const char *open = memchr(text, '(', size), *close = memrchr(text, ')', size);
	uint64_t flags, start;

	/* The name stands in parentheses and may hold others: the last one is the kernel's. */
	if (!take_id(&c, &stat.id) || !open || !close || close < open)
		return -EBADMSG;
	c.at = close + 1;
	skip_blanks(&c);
	if (c.at == c.end)
		return -EBADMSG;
	stat.state = *c.at++;
	if (!take_id(&c, &stat.parent))
		return -EBADMSG;
	for (int field = 5; field < 9; field++) {
		if (!skip_word(&c))
			return -EBADMSG;
	}
	if (!take_number(&c, 10, &flags))
		return -EBADMSG;
	for (int field = 10; field < 20; field++) {
		if (!skip_word(&c))
			return -EBADMSG;
	}
	if (!take_number(&c, 10, &stat.threads) || !skip_word(&c) || !take_number(&c, 10, &start))
		return -EBADMSG;
	/* The first thread may have ended before the others. */
	stat.has_ended = stat.state == 'X' || (stat.state == 'Z' && stat.threads <= 1);
	take_comm(open + 1, (size_t)(close - open - 1), flags, &stat);
	stat.start = start;
	*ret = stat;
	return 0;
}

/* "1000 1000 1000 1000": real, effective, saved, of the file system. */
static bool take_ids(struct cursor *line, uint32_t ids[3])
{
	for (int i = 0; i < 3; i++) {
		uint64_t value;

		if (!take_number(line, 10, &value) || value > UINT32_MAX)
			return false;
		ids[i] = (uint32_t)value;
	}
	return true;
}

int proc_status_parse(const char *text, size_t size, struct proc_status *ret)
{
	struct cursor c = { text, text + size }, line;
	struct proc_status status = { 0 };
	uint32_t uids[3], gids[3];
	bool has_uid = false, has_gid = false, has_process = false;
	uint64_t value;

	/* Newlines in the name are escaped here. */
	while (take_line(&c, &line)) {
		if (line_begins(&line, "Tgid:"))
			has_process = take_id(&line, &status.process);
		else if (line_begins(&line, "Uid:"))
			has_uid = take_ids(&line, uids);
		else if (line_begins(&line, "Gid:"))
			has_gid = take_ids(&line, gids);
		else if (line_begins(&line, "NoNewPrivs:"))
			status.no_new_ids = take_number(&line, 10, &value) && value;
	}
	if (!has_uid || !has_gid || !has_process)
		return -EBADMSG;
	status.ids = (struct state_ids){
		.uid = uids[0], .euid = uids[1], .suid = uids[2], .gid = gids[0], .egid = gids[1],
	};
	*ret = status;
	return 0;
}

int proc_cgroup_parse(const char *text, size_t size, const char **ret_path, size_t *ret_size)
{
	struct cursor c = { text, text + size }, line;

	while (take_line(&c, &line)) {
		if (!line_begins(&line, "0::"))
			continue;
		*ret_path = line.at;
		*ret_size = (size_t)(line.end - line.at);
		return 0;
	}
	return -ENOENT;
}

/* ---- maps ---- */

static bool take_device(struct cursor *line, struct proc_mapping *mapping)
{
	uint64_t major, minor;

	if (!take_number(line, 16, &major) || !take_char(line, ':') || !take_number(line, 16, &minor))
		return false;
	mapping->major = (uint32_t)major;
	mapping->minor = (uint32_t)minor;
	return true;
}

int proc_maps_next(const char *text, size_t size, size_t *at, struct proc_mapping *ret)
{
	struct cursor c = { text + *at, text + size }, line;
	struct proc_mapping mapping = { 0 };

	if (!take_line(&c, &line))
		return 0;
	*at = (size_t)(c.at - text);
	if (!take_number(&line, 16, &mapping.from) || !take_char(&line, '-') || !take_number(&line, 16, &mapping.to))
		return -EBADMSG;
	skip_blanks(&line);
	if (line.end - line.at < 4)
		return -EBADMSG;
	mapping.executable = line.at[2] == 'x';
	line.at += 4;
	if (!take_number(&line, 16, &mapping.offset) || !take_device(&line, &mapping) || !take_number(&line, 10, &mapping.inode))
		return -EBADMSG;
	skip_blanks(&line);
	mapping.path = line.at;
	mapping.path_size = (size_t)(line.end - line.at);
	*ret = mapping;
	return 1;
}

/* ---- sockets ---- */

/* "0100007F:1F90": words of 32 bits in the machine's byte order, as numbers. */
static bool take_address(struct cursor *c, struct state_address *ret)
{
	struct state_address address = { 0 };
	size_t digits = 0;
	uint64_t port;

	skip_blanks(c);
	while (c->at + digits < c->end && digit_value(c->at[digits]) < 16)
		digits++;
	if (digits != 8 && digits != 32)
		return false;
	for (size_t word = 0; word < digits / 8; word++) {
		uint32_t value = 0;

		for (int i = 0; i < 8; i++)
			value = value << 4 | digit_value(*c->at++);
		memcpy(address.bytes + 4 * word, &value, sizeof(value));
	}
	if (!take_char(c, ':') || !take_number(c, 16, &port) || port > UINT16_MAX)
		return false;
	address.port = (uint16_t)port;
	*ret = address;
	return true;
}

static bool net_line(struct cursor *line, struct proc_socket *ret)
{
	struct proc_socket socket = { 0 };
	uint64_t number, state;

	if (!take_number(line, 10, &number) || !take_char(line, ':') || !take_address(line, &socket.local) ||
		!take_address(line, &socket.remote) || !take_number(line, 16, &state))
		return false;
	/* Queues, timer, retransmissions, user, timeout. */
	for (int i = 0; i < 5; i++) {
		if (!skip_word(line))
			return false;
	}
	if (!take_number(line, 10, &socket.inode))
		return false;
	socket.state = (uint16_t)state;
	*ret = socket;
	return true;
}

int proc_net_next(const char *text, size_t size, size_t *at, struct proc_socket *ret)
{
	struct cursor c = { text + *at, text + size }, line;
	bool found = false;

	while (!found && take_line(&c, &line))
		found = net_line(&line, ret);
	*at = (size_t)(c.at - text);
	return found;
}

/* "0000000000000000: 00000002 00000000 00010000 0001 01 24576 /run/name" */
static bool unix_line(struct cursor *line, struct proc_socket *ret)
{
	struct proc_socket socket = { 0 };
	uint64_t type, state;

	/* Number, references, protocol, flags. */
	for (int i = 0; i < 4; i++) {
		if (!skip_word(line))
			return false;
	}
	if (!take_number(line, 16, &type) || !take_number(line, 16, &state) || !take_number(line, 10, &socket.inode))
		return false;
	socket.type = (uint16_t)type;
	socket.state = (uint16_t)state;
	if (take_char(line, ' ')) {
		socket.path = line->at;
		socket.path_size = (size_t)(line->end - line->at);
	}
	*ret = socket;
	return true;
}

int proc_unix_next(const char *text, size_t size, size_t *at, struct proc_socket *ret)
{
	struct cursor c = { text + *at, text + size }, line;
	bool found = false;

	while (!found && take_line(&c, &line))
		found = unix_line(&line, ret);
	*at = (size_t)(c.at - text);
	return found;
}

bool proc_link_is_socket(const char *text, size_t size, uint64_t *ret_inode)
{
	struct cursor c = { text, text + size };

	return line_begins(&c, "socket:[") && take_number(&c, 10, ret_inode) && take_char(&c, ']') && c.at == c.end;
}
