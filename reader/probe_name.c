#include "reader/probe_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define ID_DIGITS  16
#define SYMBOL_MAX 36 /* leaves room for both numbers in the 63 characters that the kernel takes   \
		       */

static uint32_t crc32(const char *text)
{
	uint32_t crc = 0xffffffff;

	for (; *text; text++) {
		crc ^= (unsigned char)*text;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static const char group_head[] = "tracefan_";

static void sanitise(const char *text, char *out, size_t most)
{
	size_t n = 0;

	for (; *text && n < most; text++)
		out[n++] = (char)(isascii(*text) && isalnum((unsigned char)*text) ? *text : '_');
	out[n] = '\0';
}

void probe_name_group(const char *session, char *group, size_t size)
{
	char clean[SYMBOL_MAX + 1];

	sanitise(session, clean, SYMBOL_MAX);
	(void)snprintf(group, size, "%s%s_%08x", group_head, clean, crc32(session));
}

bool probe_name_is_group(const char *group)
{
	return !strncmp(group, group_head, sizeof(group_head) - 1);
}

void probe_name_event(const char *symbol, uint64_t id, const char *tag, char *event, size_t size)
{
	char clean[SYMBOL_MAX + 1];

	sanitise(symbol, clean, SYMBOL_MAX - 1);
	/* A name can't begin with a digit. */
	(void)snprintf(event, size, "%s%s_%016llx_%.8s",
		isdigit((unsigned char)clean[0]) || !clean[0] ? "_" : "", clean,
		(unsigned long long)id, tag);
}

static bool hex_digits(const char *text, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!isxdigit((unsigned char)text[i]) || isupper((unsigned char)text[i]))
			return false;
	}
	return true;
}

bool probe_name_is_ours(const char *event)
{
	size_t tail = 1 + ID_DIGITS + 1 + PROBE_NAME_TAG_DIGITS, length = strlen(event);
	const char *end = event + length - tail;

	return length > tail && end[0] == '_' && hex_digits(end + 1, ID_DIGITS) &&
	       end[1 + ID_DIGITS] == '_' && hex_digits(end + 2 + ID_DIGITS, PROBE_NAME_TAG_DIGITS);
}
