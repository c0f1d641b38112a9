/* Whether a probe may stand at a place: the kernel writes a breakpoint there, and in the middle of an instruction
 * that would change what the program does. Nobody else looks: the kernel reads the bytes at the place alone. */
#include "consumers/client/elf.h"

#include "consumers/client/instruction.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define FUNCTION_MAX (16U << 20) /* longer ones are not looked through */

struct function {
	uint64_t address; /* looked for */
	const char *name; /* libelf's; NULL: none was found */
	uint64_t begin;
};

/* The function that an address lies in, the innermost where symbols overlap. */
static bool look_in_table(void *context, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	struct function *function = context;
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
			function->address < symbol.st_value ||
			function->address - symbol.st_value >= symbol.st_size)
			continue;
		if (function->name && symbol.st_value <= function->begin)
			continue;
		function->name = elf_strptr(elf, header->sh_link, symbol.st_name);
		function->begin = symbol.st_value;
	}
	return true;
}

static bool find_function(const struct elf_file *file, uint64_t address, struct function *ret)
{
	*ret = (struct function){ .address = address };
	elf_file_tables(file, look_in_table, ret);
	return ret->name != NULL;
}

static int find_address(const struct elf_file *file, uint64_t offset, uint64_t *ret)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (segment->executable && offset >= segment->offset && offset - segment->offset < segment->file_size) {
			*ret = segment->address + (offset - segment->offset);
			return 0;
		}
	}
	return -ENOENT;
}

/* Follows the instructions from the function's begin. Returns 1 (one begins `distance` bytes into it), 0 (none
 * does; *ret_before and *ret_after are where the one around begins and ends) or -1 (it can't be told). */
static int follow(const uint8_t *code, size_t size, size_t distance, size_t *ret_before, size_t *ret_after)
{
	size_t at = 0;

	while (at < distance) {
		unsigned int length = instruction_length(code + at, size - at);

		/* Data between code, or an instruction that came after this was written. */
		if (length == 0)
			return -1;
		*ret_before = at;
		at += length;
	}
	*ret_after = at;
	return at == distance;
}

static int check_x86(const struct elf_file *file, const struct function *function, uint64_t offset,
	uint64_t distance, struct failure *failure)
{
	size_t want = distance + INSTRUCTION_MAX, before = 0, after = 0;
	uint8_t *code = distance < FUNCTION_MAX ? malloc(want) : NULL;
	ssize_t n = code ? pread(file->fd, code, want, (off_t)(offset - distance)) : -1;
	int rc = code && n >= 0 && (uint64_t)n >= distance ? follow(code, (size_t)n, distance, &before, &after) : -1;

	free(code);
	if (rc != 0)
		return 0;
	return failure_set(failure, TFAN_LOCATION, EINVAL, -1,
		"%s+%llu of %s is inside an instruction: one begins at %s+%zu and the next at %s+%zu", function->name,
		(unsigned long long)distance, file->path, function->name, before, function->name, after);
}

int elf_file_check_boundary(const struct elf_file *file, uint64_t offset, bool at_entry, struct failure *failure)
{
	struct function function;
	uint64_t address, distance;

	if (find_address(file, offset, &address) < 0)
		return 0;
	if (file->machine == EM_AARCH64 && address % 4 != 0)
		return failure_set(failure, TFAN_LOCATION, EINVAL, -1,
			"offset 0x%llx of %s is inside an instruction: they begin at multiples of 4",
			(unsigned long long)offset, file->path);
	if (!find_function(file, address, &function) || address == function.begin)
		return 0;
	distance = address - function.begin;
	if (at_entry)
		return failure_set(failure, TFAN_LOCATION, EINVAL, -1,
			"a return probe belongs at the begin of its function, and offset 0x%llx of %s is %s+%llu",
			(unsigned long long)offset, file->path, function.name, (unsigned long long)distance);
	if (file->machine != EM_X86_64 || !file->is_64)
		return 0;
	return check_x86(file, &function, offset, distance, failure);
}
