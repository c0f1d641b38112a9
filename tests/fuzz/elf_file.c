/* Files that say they are programs. */
#include "consumers/client/elf.h"
#include "consumers/client/usdt.h"
#include "tests/support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	struct elf_file file = ELF_FILE_NONE;
	struct usdt_site *sites;
	struct failure failure;
	uint64_t found;
	size_t count;
	char path[64];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	failure_init(&failure);
	if (elf_file_open(path, &file, &failure) == 0) {
		(void)elf_file_symbol(&file, "probed@V1", 3, &found, &failure);
		(void)elf_file_symbol(&file, "nothing", 0, &found, &failure);
		(void)elf_file_check_offset(&file, 0x1000, &failure);
		for (uint64_t at = 0x200; at < 0x400; at += 37)
			(void)elf_file_check_boundary(&file, at, false, &failure);
		if (usdt_find(&file, "demo", "probe", &sites, &count, &failure) == 0)
			free(sites);
		elf_file_release(&file);
	}
	(void)close(fd);
}
