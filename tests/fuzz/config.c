/* A session's configuration: any bytes are a configuration or a mistake that is told. */
#include "reader/config.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>
#include <string.h>

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	static const struct reader_options defaults = { .buffer_size = 8 << 20, .pool_size = 1 << 20 };
	struct reader_options options = defaults;
	struct config config;
	struct config_error error = { .line = -1 };
	int lines = 1;

	for (size_t i = 0; i < size; i++)
		lines += bytes[i] == '\n';
	if (config_parse((const char *)bytes, size, &config, &error) < 0) {
		/* Of a line that there is, in a message that ends. */
		if (error.line < 0 || error.line > lines || !memchr(error.message, 0, sizeof(error.message)) ||
			!*error.message)
			abort();
		return;
	}
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		if (!config.values[i] != !config.lines[i] || config.lines[i] > lines)
			abort();
	}
	for (size_t i = 0; i < config.probe_count; i++) {
		const struct control_create *create = &config.probes[i].create;

		if (!*create->name || !create->kind || create->fetch_count > sizeof(create->fetch) / 4 ||
			config.probes[i].line < 1 || config.probes[i].line > lines)
			abort();
	}
	/* Whatever it took it can use, unless two settings contradict each other. */
	if (config_apply(&config, &options, &error) < 0 && !strstr(error.message, "larger than"))
		abort();
	config_release(&config);
}
