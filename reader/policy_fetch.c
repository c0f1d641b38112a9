#include "reader/policy_fetch.h"

#include "base/checked.h"

#include <string.h>

/* True for a number of digits, decimal or hexadecimal. */
static bool is_number(const char *text, size_t length)
{
	const char *digits = "0123456789";

	if (length > 2 && text[0] == '0' && text[1] == 'x') {
		digits = "0123456789abcdefABCDEF";
		text += 2;
		length -= 2;
	}
	for (size_t i = 0; i < length; i++) {
		if (!strchr(digits, text[i]))
			return false;
	}
	return length > 0;
}

/* %REGISTER, $retval, $argN, $comm, $stack (the pointer itself) and \NUMBER. Of $arg only with a
 * number: the kernel also knows $arg*, which may be anything. */
static bool is_register(const char *fetch, size_t length)
{
	static const char *const whole[] = { "$retval", "$comm", "$stack" };

	if (length > 1 && *fetch == '%') {
		for (size_t i = 1; i < length; i++) {
			if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", fetch[i]))
				return false;
		}
		return true;
	}
	if (length > 1 && *fetch == '\\')
		return is_number(fetch + 1 + (fetch[1] == '-'), length - 1 - (fetch[1] == '-'));
	if (length > 4 && !strncmp(fetch, "$arg", 4))
		return is_number(fetch + 4, length - 4);
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		if (length == strlen(whole[i]) && !strncmp(fetch, whole[i], length))
			return true;
	}
	return false;
}

/* u8 to u64, s, x, and b for bits: nothing that is an array or follows a pointer. */
static bool is_plain(const char *type)
{
	static const char *const sizes[] = { "8", "16", "32", "64" };

	if (*type == 'b')
		return type[1] && !type[1 + strspn(type + 1, "0123456789@/")];
	if (!*type || !strchr("usx", *type))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (!strcmp(type + 1, sizes[i]))
			return true;
	}
	return false;
}

static bool registers_only(const char *argument)
{
	const char *equals = strchr(argument, '='), *fetch = equals ? equals + 1 : argument;
	const char *colon = strchr(fetch, ':');
	size_t length = colon ? (size_t)(colon - fetch) : strlen(fetch);

	if (!is_register(fetch, length))
		return false;
	/* A thread's name is text without memory's being followed. */
	return !colon || is_plain(colon + 1) ||
	       (length == 5 && !strncmp(fetch, "$comm", 5) && !strcmp(colon + 1, "string"));
}

enum policy_fetch policy_fetch_needed(const char *fetch, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!registers_only(fetch))
			return POLICY_FETCH_MEMORY;
		fetch += strlen(fetch) + 1;
	}
	return count ? POLICY_FETCH_REGISTERS : POLICY_FETCH_NONE;
}
