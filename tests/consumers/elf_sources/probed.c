/* What elf_file.c resolves symbols of: prints the file offset of the place that it is asked for, as the kernel
 * has mapped it: the answer to compare with.
 *
 * usage: probed SYMBOL (one of its own) | probed LIBRARY SYMBOL [VERSION] */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int counter = 1;
__attribute__((noinline)) int probed(int a)
{
	return a + counter++;
}

__attribute__((noinline, noclone)) static int hidden(int a)
{
	return a - counter++;
}

static int print_offset(const void *place)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	uintptr_t at = (uintptr_t)place;
	char line[4096];

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long begin, end, offset;

		if (sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 && at >= begin && at < end) {
			printf("0x%lx\n", offset + (at - begin));
			fclose(maps);
			return 0;
		}
	}
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "probed") == 0)
		return print_offset((const void *)probed);
	if (argc == 2 && strcmp(argv[1], "hidden") == 0)
		return print_offset((const void *)hidden);
	if (argc == 2 && strcmp(argv[1], "main") == 0)
		return print_offset((const void *)main);
#ifndef STATIC
	if (argc >= 3) {
		void *library = dlopen(argv[1], RTLD_NOW);
		void *place = !library ? NULL : argc == 4 ? dlvsym(library, argv[2], argv[3]) : dlsym(library, argv[2]);

		return place ? print_offset(place) : 2;
	}
#endif
	return (int)write(1, "", 0) + probed(argc) + hidden(argc);
}
