/* The user's program or library, opened with the user's rights: where its symbols and static probes lie in
 * the file. Works on untrusted files: libelf reads, every number is checked here. */
#ifndef TRACEFAN_CONSUMERS_CLIENT_ELF_H
#define TRACEFAN_CONSUMERS_CLIENT_ELF_H

#include "consumers/client/failure.h"

#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_segment {
	uint64_t offset, file_size; /* in the file */
	uint64_t address;
	bool executable;
};

struct elf_file {
	int fd;
	Elf *elf;
	int debug_fd; /* of the file with its names, where those were stripped off into one; -1: none */
	Elf *debug;   /* NULL: none */
	char path[PATH_MAX]; /* the real one, symlinks resolved */
	unsigned int machine; /* EM_... */
	bool is_64, is_big_endian;
	bool is_go;       /* built by Go's own compiler: return probes corrupt its moving stacks */
	bool is_stripped; /* no .symtab: only what it exports has a name */
	struct elf_segment *segments; /* owned: the PT_LOADs */
	size_t segment_count;
};
#define ELF_FILE_NONE { .fd = -1, .debug_fd = -1 }
#define ELF_DEBUG_ROOT "/usr/lib/debug"

/* Opens and looks through `path`. Failures are TFAN_LOCATION (or TFAN_NOT_PERMITTED) and name the real
 * file. *ret is the caller's: elf_file_release, which also takes ELF_FILE_NONE. */
int elf_file_open(const char *path, struct elf_file *ret, struct failure *failure);
void elf_file_release(struct elf_file *file);

/* Looks below `root` for the names that a stripped file lost, by its build id. None is no failure. */
void elf_debug_open(struct elf_file *file, const char *root);

/* The symbol tables that tell names of the file: its own, and its debug file's. Calls `look` for each until it
 * returns false. */
void elf_file_tables(const struct elf_file *file,
	bool (*look)(void *context, Elf *elf, Elf_Scn *section, const GElf_Shdr *header), void *context);

/* Where an address lies in the file. Returns 0 or -ENOENT. */
int elf_file_offset(const struct elf_file *file, uint64_t address, bool executable, uint64_t *ret);

/* Checks that a file offset lies in what is executed; failure: TFAN_LOCATION, which tells an address that
 * was meant from an offset. */
int elf_file_check_offset(const struct elf_file *file, uint64_t offset, struct failure *failure);

/* Checks that an instruction begins at a file offset, and, for a return probe (at_entry), a function. What can't be
 * told, in a file without names, of another machine, in hand-written code with data inside, is let pass. Failure:
 * TFAN_LOCATION. */
int elf_file_check_boundary(const struct elf_file *file, uint64_t offset, bool at_entry, struct failure *failure);

/* The file offset of symbol + offset: "name", "name@VERSION" or "name@@VERSION". Failure: TFAN_LOCATION. */
int elf_file_symbol(const struct elf_file *file, const char *symbol, uint64_t offset, uint64_t *ret,
	struct failure *failure);

/* The address of a symbol of any type, for an operand of a static probe. Returns 0 or -ENOENT. */
int elf_file_address(const struct elf_file *file, const char *symbol, uint64_t *ret);

/* The section of this name, or NULL; *ret_header is filled. */
Elf_Scn *elf_file_section(Elf *elf, const char *name, GElf_Shdr *ret_header);

#endif
