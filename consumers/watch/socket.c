#include "consumers/watch/socket.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

const struct tfan_member socket_state_members[] = {
	{ TFAN_MEMBER(struct socket_state, oldstate) },
	{ TFAN_MEMBER(struct socket_state, newstate) },
	{ TFAN_MEMBER(struct socket_state, sport) },
	{ TFAN_MEMBER(struct socket_state, dport) },
	{ TFAN_MEMBER(struct socket_state, family) },
	{ TFAN_MEMBER(struct socket_state, saddr) },
	{ TFAN_MEMBER(struct socket_state, daddr) },
	{ TFAN_MEMBER(struct socket_state, saddr_v6) },
	{ TFAN_MEMBER(struct socket_state, daddr_v6) },
};

/* A path ends at its NUL or at the sockaddr's end. An abstract name is all that is left of the sockaddr, NULs and all. */
static void socket_name(struct socket_address *address, const struct socket_fetched *from, int64_t length)
{
	size_t room = length > 2 ? (size_t)length - 2 : 0;
	size_t size = from->name ? strlen(from->name) : 0;

	if (room > sizeof(address->name))
		room = sizeof(address->name);
	if (size == 0 && room > 1) {
		size = from->abstract ? strlen(from->abstract) : 0;
		size = size < room - 1 ? size : room - 1;
		address->name[0] = '\0';
		memcpy(address->name + 1, from->abstract ? from->abstract : "", size);
		address->name_size = size + 1;
		address->name_cut = address->name_size < room;
		return;
	}
	address->name_size = size < room ? size : room;
	memcpy(address->name, from->name ? from->name : "", address->name_size);
}

void socket_from_fetched(struct socket_address *address, const struct socket_fetched *from, int64_t length, const char *by)
{
	*address = (struct socket_address){ .by = by, .family = length >= 2 ? from->family : AF_UNSPEC };
	switch (address->family) {
	case AF_INET:
		address->port = ntohs(from->port);
		memcpy(address->bytes, &from->v4, sizeof(from->v4));
		break;
	case AF_INET6:
		address->port = ntohs(from->port);
		memcpy(address->bytes, &from->v6_head, 8);
		memcpy(address->bytes + 8, &from->v6_tail, 8);
		address->scope = from->scope;
		break;
	case AF_UNIX:
		socket_name(address, from, length);
		break;
	default:
		break;
	}
}

void socket_from_state(struct socket_address *address, const struct socket_state *from, bool local)
{
	const char *v4 = local ? from->saddr : from->daddr, *v6 = local ? from->saddr_v6 : from->daddr_v6;
	uint16_t port = local ? from->sport : from->dport;
	bool is_v6 = from->family == AF_INET6;

	if (is_v6 ? !v6 : !v4)
		return;
	/* A socket that got no port by bind(2) has none yet. */
	if (port == 0 && address->by && address->port != 0)
		port = address->port;
	/* The event does not have the scope, and of a link-local address the call has told it. */
	*address = (struct socket_address){ .by = "kernel", .family = is_v6 ? AF_INET6 : AF_INET, .port = port,
		.scope = address->family == AF_INET6 ? address->scope : 0 };
	memcpy(address->bytes, is_v6 ? v6 : v4, is_v6 ? 16 : 4);
}

static void socket_tell_internet(struct watch_record *record, const struct socket_address *address, char *text, size_t size)
{
	bool is_v6 = address->family == AF_INET6;

	(void)inet_ntop(address->family, address->bytes, text, (socklen_t)size);
	if (is_v6 && address->scope)
		(void)snprintf(text + strlen(text), size - strlen(text), "%%%u", address->scope);
	observer_text(record, "family", is_v6 ? "inet6" : "inet");
	observer_text(record, "address", text);
	if (address->port)
		observer_integer(record, "port", address->port);
	else
		observer_unknown(record, "port");
}

void socket_tell(struct watch_record *record, struct socket_text *text, const struct socket_address *address)
{
	bool internet = address->by && (address->family == AF_INET || address->family == AF_INET6);

	if (internet) {
		socket_tell_internet(record, address, text->bytes, sizeof(text->bytes));
	} else if (address->by && address->family == AF_UNIX) {
		observer_text(record, "family", "unix");
		observer_bytes(record, "address", address->name, address->name_size);
		observer_unknown(record, "port");
	} else {
		if (address->by)
			(void)snprintf(text->bytes, sizeof(text->bytes), address->family == AF_UNSPEC ? "unspec" : "%d", address->family);
		observer_text(record, "family", address->by ? text->bytes : NULL);
		observer_unknown(record, "address");
		observer_unknown(record, "port");
	}
	observer_bool(record, "address_cut", address->by && address->family == AF_UNIX && address->name_cut);
	observer_text(record, "by", address->by);
}

void socket_tell_error(struct watch_record *record, int64_t result)
{
	const char *name = result < 0 && result >= -4095 ? strerrorname_np((int)-result) : NULL;

	if (result < 0 && !name)
		name = "unknown";
	observer_text(record, "error", name);
}
