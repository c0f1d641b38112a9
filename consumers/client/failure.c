#include "consumers/client/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ERRNO_MAX 4095

void failure_init(struct failure *failure)
{
	failure->text[0] = '\0';
	failure->public = (struct tfan_failure){ .position = -1, .message = failure->text };
}

static void store(struct failure *failure, enum tfan_class category, int error, int position)
{
	failure->public.category = category;
	failure->public.error = error;
	failure->public.position = position;
}

int failure_store(struct failure *failure, enum tfan_class category, int error, int position,
	const char *format, ...)
{
	char text[FAILURE_TEXT_MAX];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	memcpy(failure->text, text, sizeof(text));
	failure->refused = false;
	store(failure, category, error, position);
	return error ? -error : -EIO;
}

void failure_append(struct failure *failure, const char *format, ...)
{
	size_t used = strlen(failure->text);
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(failure->text + used, sizeof(failure->text) - used, format, ap);
	va_end(ap);
}

void failure_restore(struct failure *failure, const struct failure *kept)
{
	*failure = *kept;
	failure->public.message = failure->text;
}

/* The errno to return where the router named none. */
static int default_error(enum tfan_class category)
{
	switch (category) {
	case TFAN_USAGE:
	case TFAN_FETCH_ARG:
		return EINVAL;
	case TFAN_NOT_PERMITTED:
		return EPERM;
	case TFAN_MISSING:
		return EOPNOTSUPP;
	case TFAN_LOCATION:
		return ENOENT;
	case TFAN_BUSY:
		return EBUSY;
	case TFAN_FAILED:
	default:
		return EIO;
	}
}

int failure_store_reply(struct failure *failure, uint32_t status, const struct control_failure *from)
{
	enum tfan_class category = TFAN_FAILED;
	int error = from->error, position = from->position;

	if (status >= TFAN_FAILED && status <= TFAN_BUSY)
		category = (enum tfan_class)status;
	if (error < 0 || error > ERRNO_MAX)
		error = 0;
	if (position < 0 || position > CONTROL_SIZE_MAX)
		position = -1;
	(void)failure_set(failure, category, error, position, "%.*s", (int)sizeof(from->message),
		from->message);
	failure->refused = true;
	return error ? -error : -default_error(category);
}
