/* Sending, receiving and checking control messages. */
#ifndef TRACEFAN_SHM_CONTROL_H
#define TRACEFAN_SHM_CONTROL_H

#include "shm/control_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A received message: aligned for every struct of control_abi.h. Descriptors are owned by the holder;
 * control_message_release closes those that were not taken (set to -1 when you take one). */
struct control_message {
	union {
		struct control_header header;
		uint64_t align;
		uint8_t bytes[CONTROL_SIZE_MAX];
	};
	int fds[CONTROL_FDS_MAX];
	unsigned int fd_count;
};
void control_message_release(struct control_message *message);

/* Fills in a header. */
void control_header_init(struct control_header *header, uint16_t type, uint32_t size, uint64_t cookie);

/* Sends one message; descriptors stay the caller's. Never raises SIGPIPE, never blocks on a non-blocking
 * socket. Returns 0 or -errno (-EAGAIN: the peer doesn't read; -EPIPE, or once -ECONNRESET:
 * it has closed). */
int control_send(int socket, const void *message, const int *fds, unsigned int fd_count);

/* Receives one message with its descriptors (close-on-exec). Returns 1, 0 (the peer closed; an empty
 * packet, which nobody sends, counts as that), -EAGAIN,
 * -EMSGSIZE (too long, or too many descriptors: they were closed), -EBADMSG (header: version, size or
 * a truncated packet), or another -errno. On any but 1, *ret holds no descriptor. */
int control_receive(int socket, struct control_message *ret);

/* Checks the message against the table of types: exact size, number of descriptors, every text
 * NUL-terminated, enumerations in range. `reply` selects the reply's row. Returns 0 or -EBADMSG. */
int control_check(const struct control_message *message);

/* Sends a request and waits for its reply (blocking socket; other replies are a protocol error).
 * Returns 0 with *ret filled and checked, or -errno; -ECONNRESET when the peer closed. */
int control_call(int socket, void *request, const int *fds, unsigned int fd_count, struct control_message *ret);

/* Fills in a failure; the message is formatted and cut at its array's end on a character's border. */
void control_failure_set(struct control_failure *failure, int error, int position, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Copies text into a fixed array, NUL-padded. Returns 0 or -ENAMETOOLONG (nothing copied). */
int control_text(char *array, size_t size, const char *text);

#endif
