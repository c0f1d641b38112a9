/* Names that were stripped off a program into a file of their own, as distributions do: found by the build id that
 * both carry, so that it can't be another build's. */
#include "consumers/client/elf.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BUILD_ID_MAX 64

struct build_id {
	size_t size;
	uint8_t bytes[BUILD_ID_MAX];
};

static bool read_build_id(Elf *elf, struct build_id *ret)
{
	GElf_Shdr section_header;
	Elf_Scn *section = elf_file_section(elf, ".note.gnu.build-id", &section_header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	size_t name_at, bytes_at;
	GElf_Nhdr header;

	if (!data || !data->d_buf || gelf_getnote(data, 0, &header, &name_at, &bytes_at) == 0)
		return false;
	if (header.n_type != NT_GNU_BUILD_ID || header.n_descsz < 2 || header.n_descsz > BUILD_ID_MAX)
		return false;
	ret->size = header.n_descsz;
	memcpy(ret->bytes, (const uint8_t *)data->d_buf + bytes_at, ret->size);
	return true;
}

/* ROOT/.build-id/ab/cdef....debug */
static bool debug_path(const struct build_id *id, const char *root, char *out, size_t size)
{
	int used = snprintf(out, size, "%s/.build-id/%02x/", root, id->bytes[0]);

	for (size_t i = 1; i < id->size && used > 0 && (size_t)used < size; i++)
		used += snprintf(out + used, size - (size_t)used, "%02x", id->bytes[i]);
	if (used > 0 && (size_t)used < size)
		used += snprintf(out + used, size - (size_t)used, ".debug");
	return used > 0 && (size_t)used < size;
}

void elf_debug_open(struct elf_file *file, const char *root)
{
	struct build_id id, other;
	char path[PATH_MAX];
	CLEANUP_CLOSE int fd = -1;
	struct stat st;
	Elf *elf;

	if (file->debug || !read_build_id(file->elf, &id) || !debug_path(&id, root, path, sizeof(path)))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return;
	if (elf_kind(elf) != ELF_K_ELF || !read_build_id(elf, &other) || other.size != id.size ||
		memcmp(other.bytes, id.bytes, id.size) != 0) {
		(void)elf_end(elf);
		return;
	}
	file->debug = elf;
	file->debug_fd = TAKE_FD(fd);
	file->is_stripped = false;
}
