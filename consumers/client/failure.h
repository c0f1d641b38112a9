/* Why a call on a connection failed: one place per connection that holds the class, the position and the words. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_FAILURE_H
#define TRACEFAN_CONSUMERS_CLIENT_FAILURE_H

#include "consumers/client/tracefan.h"
#include "shm/control_abi.h"

#define FAILURE_TEXT_MAX 1536

struct failure {
	struct tfan_failure public; /* `message` points into text */
	bool refused;               /* the router said no; otherwise the call did not get that far */
	char text[FAILURE_TEXT_MAX];
};

void failure_init(struct failure *failure);

/* failure_set(failure, category, error, position, format, ...) stores the failure and returns -error, or -EIO
 * where error is 0, for the caller to return. The arguments may point into the failure's own text. */
#define failure_set(...) failure_code(failure_store(__VA_ARGS__))

int failure_store(struct failure *failure, enum tfan_class category, int error, int position,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Tells compilers and analyzers, which see one file at a time, that a failure's code is never 0. */
static inline int failure_code(int code)
{
	if (code >= 0)
		__builtin_unreachable();
	return code;
}

/* Appends words to the message that is there, for example near names. */
void failure_append(struct failure *failure, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts back a copy of a failure, after requests that tidied up behind it. */
void failure_restore(struct failure *failure, const struct failure *kept);

/* failure_take(failure, status, from) takes over the router's own words. `status` and the numbers are the
 * peer's: they are clamped to what the public enumeration holds. Returns as failure_set. */
#define failure_take(...) failure_code(failure_store_reply(__VA_ARGS__))

int failure_store_reply(struct failure *failure, uint32_t status, const struct control_failure *from);

#endif
