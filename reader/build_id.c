#include "reader/build_id.h"

#include "base/checked.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct program_header {
	uint32_t type;
	uint64_t offset, size, align;
};

static bool is_elf(const uint8_t *head, size_t size)
{
	const uint8_t data = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB;

	return size >= sizeof(Elf32_Ehdr) && memcmp(head, ELFMAG, SELFMAG) == 0 && head[EI_DATA] == data &&
		(head[EI_CLASS] == ELFCLASS32 || head[EI_CLASS] == ELFCLASS64);
}

/* Where the table of program headers is. */
static bool find_table(const uint8_t *head, size_t size, uint64_t *ret_offset, uint32_t *ret_count)
{
	if (head[EI_CLASS] == ELFCLASS64) {
		Elf64_Ehdr header;

		if (size < sizeof(header))
			return false;
		memcpy(&header, head, sizeof(header));
		*ret_offset = header.e_phoff;
		*ret_count = header.e_phnum;
		return header.e_phentsize == sizeof(Elf64_Phdr);
	} else {
		Elf32_Ehdr header;

		memcpy(&header, head, sizeof(header));
		*ret_offset = header.e_phoff;
		*ret_count = header.e_phnum;
		return header.e_phentsize == sizeof(Elf32_Phdr);
	}
}

static bool read_header(const uint8_t *head, size_t size, uint64_t table, uint32_t i, struct program_header *ret)
{
	if (head[EI_CLASS] == ELFCLASS64) {
		Elf64_Phdr header;

		if (table > size || !range_inside(table + i * sizeof(header), sizeof(header), size))
			return false;
		memcpy(&header, head + table + i * sizeof(header), sizeof(header));
		*ret = (struct program_header){ header.p_type, header.p_offset, header.p_filesz, header.p_align };
	} else {
		Elf32_Phdr header;

		if (table > size || !range_inside(table + i * sizeof(header), sizeof(header), size))
			return false;
		memcpy(&header, head + table + i * sizeof(header), sizeof(header));
		*ret = (struct program_header){ header.p_type, header.p_offset, header.p_filesz, header.p_align };
	}
	return true;
}

int build_id_segments(const void *bytes, size_t size, struct build_id_segment ret[BUILD_ID_SEGMENTS])
{
	const uint8_t *head = bytes;
	struct program_header header;
	uint64_t table;
	uint32_t count;
	int found = 0;

	if (!is_elf(head, size) || !find_table(head, size, &table, &count))
		return -EBADMSG;
	for (uint32_t i = 0; i < count && found < BUILD_ID_SEGMENTS; i++) {
		if (!read_header(head, size, table, i, &header))
			break;
		if (header.type != PT_NOTE)
			continue;
		ret[found++] = (struct build_id_segment){
			.offset = header.offset, .size = header.size, .align = header.align == 8 ? 8 : 4,
		};
	}
	return found;
}

size_t build_id_find(const void *bytes, size_t size, uint64_t align, const uint8_t **ret)
{
	const uint8_t *notes = bytes;
	uint64_t at = 0;

	while (range_inside(at, sizeof(Elf64_Nhdr), size)) {
		Elf64_Nhdr note;
		uint64_t name, content;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		content = align_up(name + note.n_namesz, align);
		if (!range_inside(name, note.n_namesz, size) || !range_inside(content, note.n_descsz, size))
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
			memcmp(notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 && note.n_descsz &&
			note.n_descsz <= STATE_BUILD_ID_MAX) {
			*ret = notes + content;
			return note.n_descsz;
		}
		at = align_up(content + note.n_descsz, align);
	}
	return 0;
}
