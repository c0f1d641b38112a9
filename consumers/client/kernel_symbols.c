#include "consumers/client/kernel_symbols.h"

#include <stdbool.h>
#include <string.h>

void kernel_symbols_init(struct kernel_symbols *symbols, const char *wanted)
{
	const char *colon = strchr(wanted, ':');

	memset(symbols, 0, sizeof(*symbols));
	if (colon)
		(void)snprintf(symbols->module, sizeof(symbols->module), "%.*s", (int)(colon - wanted), wanted);
	(void)snprintf(symbols->name, sizeof(symbols->name), "%s", colon ? colon + 1 : wanted);
	near_init(&symbols->near, symbols->name);
}

static void take(struct kernel_symbols *symbols, const char *name, const char *module, bool alike)
{
	if (symbols->module[0] && strcmp(symbols->module, module) != 0)
		return;
	if (strcmp(symbols->name, name) != 0) {
		if (alike)
			near_offer(&symbols->near, name);
		return;
	}
	symbols->count++;
	if (!module[0])
		return;
	if (symbols->module_count < KERNEL_SYMBOLS_MODULES)
		(void)snprintf(symbols->modules[symbols->module_count], KERNEL_SYMBOL_MAX, "%s", module);
	symbols->module_count++;
}

/* "ffffffffc0401230 t ext4_read\t[ext4]" */
void kernel_symbols_read(struct kernel_symbols *symbols, FILE *list, bool alike)
{
	char line[512], name[KERNEL_SYMBOL_MAX], module[KERNEL_SYMBOL_MAX], type;

	while (fgets(line, sizeof(line), list)) {
		module[0] = '\0';
		if (sscanf(line, "%*s %c %127s [%127[^]]]", &type, name, module) < 2 || !strchr("tTwW", type))
			continue;
		take(symbols, name, module, alike);
	}
}

void kernel_symbols_find(struct kernel_symbols *symbols, const char *wanted, bool alike)
{
	FILE *list = fopen("/proc/kallsyms", "re");

	kernel_symbols_init(symbols, wanted);
	if (!list)
		return;
	kernel_symbols_read(symbols, list, alike);
	(void)fclose(list);
}
