/* The notation of probes, and what is made of its fetch arguments. */
#include "consumers/client/fetch.h"
#include "consumers/client/probe_spec.h"
#include "tests/support/fuzz.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	static const struct usdt_args args = { .count = 2, .rows = {
		{ .fetch = "%di", .type = "s32" }, { .reason = "none" } } };
	struct fetch_context context = { .machine = EM_X86_64, .is_64 = true, .usdt = &args };
	struct probe_spec *spec = malloc(sizeof(*spec));
	struct control_create *create = malloc(sizeof(*create));
	struct fetch_places *places = malloc(sizeof(*places));
	char *text = malloc(size + 1);
	struct probe_spec_error error;

	memcpy(text, bytes, size);
	text[size] = '\0';
	if (probe_spec_parse(text, spec, &error) < 0) {
		/* The position is one of the text, its end included. */
		if (error.position < 0 || (size_t)error.position > strlen(text))
			abort();
	} else {
		context.kind = spec->kind;
		if (fetch_pack(spec, &context, create, places, &error) == 0)
			for (int i = 0; i < CONTROL_FETCH_MAX; i += 7)
				if (fetch_position(places, i) > (int)size)
					abort();
	}
	free(text);
	free(places);
	free(create);
	free(spec);
}
