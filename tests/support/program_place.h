/* Where in this program's file a function lies, for a probe on it. */
#ifndef TRACEFAN_TESTS_SUPPORT_PROGRAM_PLACE_H
#define TRACEFAN_TESTS_SUPPORT_PROGRAM_PLACE_H

#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct program_place {
	uintptr_t address;
	uint64_t offset;
};

/* The file offset of an address, by the program headers of the object that holds it. */
static inline int program_place_find(struct dl_phdr_info *info, size_t size, void *context)
{
	struct program_place *place = context;

	(void)size;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || place->address < start || place->address - start >= segment->p_filesz)
			continue;
		place->offset = place->address - start + segment->p_offset;
		return 1;
	}
	return 0;
}

/* The place as the kernel's notation has it: by a descriptor, which is returned, to be closed when the probe is defined, so
 * that the program's path is no matter. -1: there is none. */
static inline int program_place(uintptr_t function, char *ret, size_t room)
{
	struct program_place place = { .address = function };
	int fd;

	if (dl_iterate_phdr(program_place_find, &place) != 1)
		return -1;
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	(void)snprintf(ret, room, "/proc/self/fd/%d:0x%" PRIx64, fd, place.offset);
	return fd;
}

#endif
