#include "consumers/client/symbols.h"

#include "base/cleanup.h"
#include "consumers/client/kallsyms.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Processes whose mappings are kept; each costs what its symbol tables take. */
#define SYMBOLS_PROCESSES 16
#define SYMBOLS_KALLSYMS_MAX (64U << 20)

struct symbols_process {
	int process;      /* 0: the place is free */
	uint64_t started; /* its start time: another one may have its number later */
	uint64_t used;
	Dwfl *dwfl;
};

struct symbols {
	struct symbols_process processes[SYMBOLS_PROCESSES];
	uint64_t uses;
	struct kallsyms kernel;
	bool kernel_read;
	char build_id[2 * 64 + 1];
};

int symbols_make(struct symbols **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void forget(struct symbols_process *process)
{
	if (process->dwfl)
		dwfl_end(process->dwfl);
	*process = (struct symbols_process){ 0 };
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < SYMBOLS_PROCESSES; i++)
		forget(&symbols->processes[i]);
	kallsyms_release(&symbols->kernel);
	free(symbols);
}

/* A whole file of /proc, with a NUL behind it. NULL: it can't be read. */
static char *read_whole(const char *path, size_t most, size_t *ret_size)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0, room = 0;
	char *text = NULL;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && size < most) {
		if (size + 1 >= room) {
			char *more = realloc(text, room ? 2 * room : 4096);

			if (!more)
				break;
			text = more;
			room = room ? 2 * room : 4096;
		}
		n = read(fd, text + size, room - size - 1);
		size += n > 0 ? (size_t)n : 0;
	}
	if (!text || n != 0) {
		free(text);
		return NULL;
	}
	text[size] = '\0';
	*ret_size = size;
	return text;
}

/* Field 22 of its stat file, behind a name that may hold anything. 0: it is gone, or not to be seen. */
static uint64_t start_of(int process)
{
	CLEANUP_FREE char *text = NULL;
	char path[32];
	const char *at;
	size_t size;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", process);
	text = read_whole(path, 1U << 16, &size);
	at = text ? strrchr(text, ')') : NULL;
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

/* Symbols alone, of the file itself: nothing is looked for elsewhere, let alone fetched. */
static int no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, const char *file, const char *link,
	GElf_Word crc, char **ret)
{
	(void)module, (void)userdata, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)ret;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = no_debuginfo,
};

/* What it has mapped by now. What is known already and still there is kept. */
static bool report(Dwfl *dwfl, int process)
{
	int r;

	dwfl_report_begin(dwfl);
	r = dwfl_linux_proc_report(dwfl, process);
	return dwfl_report_end(dwfl, NULL, NULL) == 0 && r == 0;
}

static struct symbols_process *place_of(struct symbols *symbols, int process)
{
	struct symbols_process *oldest = &symbols->processes[0];

	for (size_t i = 0; i < SYMBOLS_PROCESSES; i++) {
		struct symbols_process *at = &symbols->processes[i];

		if (at->process == process)
			return at;
		if (at->used < oldest->used)
			oldest = at;
	}
	forget(oldest);
	return oldest;
}

/* The process's mappings, as they were when it was first asked about, or NULL. One that is gone is what it was. */
static struct symbols_process *process_of(struct symbols *symbols, int process)
{
	struct symbols_process *known = place_of(symbols, process);
	uint64_t started = start_of(process);

	if (known->process && started && started != known->started)
		forget(known);
	known->used = ++symbols->uses;
	if (known->process)
		return known;
	if (!started)
		return NULL;
	known->dwfl = dwfl_begin(&callbacks);
	if (!known->dwfl || !report(known->dwfl, process)) {
		forget(known);
		return NULL;
	}
	known->process = process;
	known->started = started;
	return known;
}

/* Where nothing is mapped, something may be since the last look. */
static Dwfl_Module *module_of(const struct symbols_process *process, uint64_t address)
{
	Dwfl_Module *module = dwfl_addrmodule(process->dwfl, address);

	if (module || start_of(process->process) != process->started || !report(process->dwfl, process->process))
		return module;
	return dwfl_addrmodule(process->dwfl, address);
}

static const char *build_id_of(struct symbols *symbols, Dwfl_Module *module)
{
	const unsigned char *bits;
	GElf_Addr where;
	int size = dwfl_module_build_id(module, &bits, &where);

	if (size <= 0 || 2 * (size_t)size >= sizeof(symbols->build_id))
		return NULL;
	for (size_t i = 0; i < (size_t)size; i++)
		(void)snprintf(symbols->build_id + 2 * i, 3, "%02x", bits[i]);
	return symbols->build_id;
}

void symbols_of_process(struct symbols *symbols, int process, uint64_t address, bool is_return, struct tfan_frame *ret)
{
	const struct symbols_process *known = process > 0 ? process_of(symbols, process) : NULL;
	/* What is behind a call at a function's end is the next function. */
	uint64_t inside = address - is_return;
	Dwfl_Module *module = known ? module_of(known, inside) : NULL;
	GElf_Off offset = 0;
	GElf_Sym symbol;
	GElf_Addr bias;
	const char *main;

	*ret = (struct tfan_frame){ .address = address };
	if (!module)
		return;
	/* Reads the file, so that its symbols and its build-id are there. */
	(void)dwfl_module_getelf(module, &bias);
	ret->file = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &main, NULL);
	if (main)
		ret->file = main;
	ret->symbol = dwfl_module_addrinfo(module, inside, &offset, &symbol, NULL, NULL, NULL);
	ret->offset = ret->symbol ? offset + is_return : 0;
	ret->build_id = build_id_of(symbols, module);
}

int symbols_read_kernel(struct kallsyms *ret)
{
	size_t size = 0;
	char *text = read_whole("/proc/kallsyms", SYMBOLS_KALLSYMS_MAX, &size);

	*ret = (struct kallsyms){ 0 };
	return text ? kallsyms_parse(text, size, ret) : 0;
}

/* Once: modules that come later have no names. */
static void read_kernel(struct symbols *symbols)
{
	if (symbols->kernel_read)
		return;
	symbols->kernel_read = true;
	(void)symbols_read_kernel(&symbols->kernel);
}

void symbols_of_kernel(struct symbols *symbols, uint64_t address, bool is_return, struct tfan_frame *ret)
{
	const struct kallsyms_row *row;

	*ret = (struct tfan_frame){ .address = address };
	read_kernel(symbols);
	row = kallsyms_find(&symbols->kernel, address - is_return);
	if (!row)
		return;
	ret->symbol = row->name;
	ret->offset = address - row->address;
	ret->file = row->module;
}
