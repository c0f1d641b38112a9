#include "consumers/client/elf.h"

#include "base/checked.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SEGMENTS_MAX 65535

void elf_file_release(struct elf_file *file)
{
	if (file->elf)
		(void)elf_end(file->elf);
	file->elf = NULL;
	if (file->debug)
		(void)elf_end(file->debug);
	file->debug = NULL;
	file->debug_fd = close_fd(file->debug_fd);
	file->fd = close_fd(file->fd);
	free(file->segments);
	file->segments = NULL;
}

static int open_failed(struct failure *failure, const char *path, int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return failure_set(failure, TFAN_LOCATION, error, -1, "there is no file %s", path);
	case EACCES:
	case EPERM:
		return failure_set(failure, TFAN_NOT_PERMITTED, error, -1,
			"not permitted to read %s: a probe is for those who may read its file", path);
	default:
		return failure_set(failure, TFAN_LOCATION, error, -1, "can't open %s: %s", path, strerror(error));
	}
}

/* Opens a regular file and learns its real name. Never waits for a pipe's other end. */
static int open_regular(const char *path, struct elf_file *file, struct failure *failure)
{
	char link[64];
	struct stat st;
	ssize_t n;

	file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file->fd < 0 || fstat(file->fd, &st) < 0)
		return open_failed(failure, path, errno);
	if (!S_ISREG(st.st_mode))
		return failure_set(failure, TFAN_LOCATION, S_ISDIR(st.st_mode) ? EISDIR : EINVAL, -1,
			"%s is %s, not a program or library", path, S_ISDIR(st.st_mode) ? "a directory" : "no regular file");
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	n = readlink(link, file->path, sizeof(file->path) - 1);
	if (n > 0)
		file->path[n] = '\0';
	else
		(void)snprintf(file->path, sizeof(file->path), "%s", path);
	return 0;
}

static int read_segments(struct elf_file *file)
{
	size_t count = 0;

	if (elf_getphdrnum(file->elf, &count) < 0 || count > SEGMENTS_MAX)
		return -EBADMSG;
	file->segments = calloc(count + 1, sizeof(*file->segments));
	if (!file->segments)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct elf_segment *segment = &file->segments[file->segment_count];
		GElf_Phdr header;

		if (!gelf_getphdr(file->elf, (int)i, &header))
			return -EBADMSG;
		if (header.p_type != PT_LOAD || header.p_filesz > UINT64_MAX - header.p_offset)
			continue;
		segment->offset = header.p_offset;
		segment->file_size = header.p_filesz;
		segment->address = header.p_vaddr;
		segment->executable = header.p_flags & PF_X;
		file->segment_count++;
	}
	return 0;
}

Elf_Scn *elf_file_section(Elf *elf, const char *name, GElf_Shdr *ret_header)
{
	size_t names;
	Elf_Scn *section = NULL;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *found;

		if (!gelf_getshdr(section, ret_header))
			continue;
		found = elf_strptr(elf, names, ret_header->sh_name);
		if (found && strcmp(found, name) == 0)
			return section;
	}
	return NULL;
}

void elf_file_tables(const struct elf_file *file,
	bool (*look)(void *context, Elf *elf, Elf_Scn *section, const GElf_Shdr *header), void *context)
{
	Elf *const elves[] = { file->elf, file->debug };

	for (size_t i = 0; i < ARRAY_SIZE(elves) && elves[i]; i++) {
		Elf_Scn *section = NULL;
		GElf_Shdr header;

		while ((section = elf_nextscn(elves[i], section)))
			if (gelf_getshdr(section, &header) &&
				(header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
				!look(context, elves[i], section, &header))
				return;
	}
}

static int read_header(struct elf_file *file, struct failure *failure)
{
	GElf_Ehdr header;
	GElf_Shdr section;
	int rc;

	if (elf_kind(file->elf) != ELF_K_ELF || !gelf_getehdr(file->elf, &header))
		return failure_set(failure, TFAN_LOCATION, ENOEXEC, -1,
			"%s is no ELF file: a script's probes belong into its interpreter", file->path);
	if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
		return failure_set(failure, TFAN_LOCATION, ENOEXEC, -1,
			"%s is an ELF file, but neither a program nor a shared library", file->path);
	rc = read_segments(file);
	if (rc)
		return failure_set(failure, TFAN_LOCATION, -rc, -1, "%s: the program headers are damaged", file->path);
	file->machine = header.e_machine;
	file->is_64 = header.e_ident[EI_CLASS] == ELFCLASS64;
	file->is_big_endian = header.e_ident[EI_DATA] == ELFDATA2MSB;
	file->is_stripped = !elf_file_section(file->elf, ".symtab", &section);
	file->is_go = elf_file_section(file->elf, ".note.go.buildid", &section) ||
		elf_file_section(file->elf, ".go.buildinfo", &section);
	return 0;
}

int elf_file_open(const char *path, struct elf_file *ret, struct failure *failure)
{
	struct elf_file file = ELF_FILE_NONE;
	int rc = open_regular(path, &file, failure);

	if (rc == 0) {
		(void)elf_version(EV_CURRENT);
		/* Reading, not mapping: a file that shrinks meanwhile must not kill the caller's process. */
		file.elf = elf_begin(file.fd, ELF_C_READ, NULL);
		if (!file.elf)
			rc = failure_set(failure, TFAN_LOCATION, ENOEXEC, -1, "%s can't be read as an ELF file: %s",
				file.path, elf_errmsg(-1));
	}
	if (rc == 0)
		rc = read_header(&file, failure);
	if (rc == 0 && file.is_stripped)
		elf_debug_open(&file, ELF_DEBUG_ROOT);
	if (rc) {
		elf_file_release(&file);
		return rc;
	}
	*ret = file;
	return 0;
}

int elf_file_offset(const struct elf_file *file, uint64_t address, bool executable, uint64_t *ret)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (executable && !segment->executable)
			continue;
		if (address >= segment->address && address - segment->address < segment->file_size) {
			*ret = segment->offset + (address - segment->address);
			return 0;
		}
	}
	return -ENOENT;
}

int elf_file_check_offset(const struct elf_file *file, uint64_t offset, struct failure *failure)
{
	uint64_t meant;

	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (segment->executable && offset >= segment->offset && offset - segment->offset < segment->file_size)
			return 0;
	}
	if (elf_file_offset(file, offset, true, &meant) == 0)
		return failure_set(failure, TFAN_LOCATION, EINVAL, -1,
			"0x%llx is an address of %s, and an offset in the file is asked for: that is 0x%llx",
			(unsigned long long)offset, file->path, (unsigned long long)meant);
	return failure_set(failure, TFAN_LOCATION, EINVAL, -1,
		"offset 0x%llx of %s is not in a part that is executed", (unsigned long long)offset, file->path);
}
