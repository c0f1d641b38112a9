/* Addresses of sockets: as programs pass them to the kernel, and as the kernel tells them. */
#ifndef TRACEFAN_WATCH_SOCKET_H
#define TRACEFAN_WATCH_SOCKET_H

#include "consumers/watch/observer.h"

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct socket_address {
	const char *by; /* who told it: "kernel", "call"; NULL: nobody */
	int family;
	uint16_t port;
	unsigned char bytes[sizeof(struct in6_addr)]; /* of IPv4 the first four */
	uint32_t scope;
	char name[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* a leading NUL: the abstract names */
	size_t name_size;
	bool name_cut; /* what follows a NUL in an abstract name isn't known */
};

/* What a sockaddr at the address $argN may be, whichever of them it is. */
struct socket_fetched {
	uint16_t family, port;
	uint32_t v4, scope;
	uint64_t v6_head, v6_tail, pointer; /* pointer: the address itself */
	const char *name, *abstract;
};

/* The arguments of a probe for that, as text, and their rows in a table: `type` has a member `address`. */
#define SOCKET_FETCH(n)                                                                                               \
	"family=+0($arg" #n "):u16 port=+2($arg" #n "):u16 v4=+4($arg" #n "):u32 v6_head=+8($arg" #n "):u64 "          \
	"v6_tail=+16($arg" #n "):u64 scope=+24($arg" #n "):u32 name=+2($arg" #n "):string abstract=+3($arg" #n "):string " \
	"pointer=$arg" #n ":u64"
#define SOCKET_ROW(type, member)                                                                                      \
	{ .name = #member, .offset = offsetof(type, address.member), .size = sizeof(((type *)0)->address.member),     \
	  .kind = TFAN_MEMBER_KIND_(((type *)0)->address.member) }
#define SOCKET_ROWS(type)                                                                                             \
	SOCKET_ROW(type, family), SOCKET_ROW(type, port), SOCKET_ROW(type, v4), SOCKET_ROW(type, v6_head),            \
		SOCKET_ROW(type, v6_tail), SOCKET_ROW(type, scope), SOCKET_ROW(type, name), SOCKET_ROW(type, abstract), \
		SOCKET_ROW(type, pointer)

/* `length` is the sockaddr's, as the caller gave it. */
void socket_from_fetched(struct socket_address *address, const struct socket_fetched *from, int64_t length, const char *by);

/* sock:inet_sock_set_state. The arrays are NULL in a text source, which shows them otherwise. */
struct socket_state {
	int oldstate, newstate;
	uint16_t sport, dport, family;
	const char *saddr, *daddr, *saddr_v6, *daddr_v6;
};
enum { SOCKET_SYN_SENT = 2, SOCKET_LISTEN = 10 };

extern const struct tfan_member socket_state_members[9];

/* The own (`local`) or the other end's address; leaves what is known where the event tells nothing. */
void socket_from_state(struct socket_address *address, const struct socket_state *from, bool local);

/* Room for what a record points to. */
struct socket_text {
	char bytes[INET6_ADDRSTRLEN + 16];
};

/* Adds family, address, port, and by whom they are known. */
void socket_tell(struct watch_record *record, struct socket_text *text, const struct socket_address *address);
/* `error`: null, or the name of what the call failed with. */
void socket_tell_error(struct watch_record *record, int64_t result);

#endif
