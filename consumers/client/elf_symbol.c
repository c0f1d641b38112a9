/* Symbols: one walk over .symtab and .dynsym that sorts what bears the name, and says why none will do. */
#include "consumers/client/elf.h"

#include "consumers/client/near.h"
#include "shm/control_abi.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define VERSION_HIDDEN 0x8000
#define PLACES_MAX     4

struct place {
	uint64_t address, size;
	bool is_local;
	bool is_default; /* of its versions, the one that a program is linked to now */
	char version[64];
};

/* The tables that say which version a dynamic symbol has. */
struct versions {
	Elf_Data *of_symbol; /* one half-word per symbol, NULL: unversioned */
	Elf_Data *definitions;
	size_t strings, count;
};

struct search {
	const struct elf_file *file;
	struct versions versions;
	char name[CONTROL_SYMBOL_MAX]; /* without the version */
	const char *version; /* NULL: any */
	bool any_type;
	struct place places[PLACES_MAX]; /* different addresses */
	size_t place_count; /* may be more than fit */
	bool undefined, ifunc, data;
	size_t symbol_count;
	struct near near;
};

static const char *version_name(const struct search *search, const struct versions *versions, unsigned int index)
{
	size_t at = 0;

	if (!versions->definitions)
		return "";
	for (size_t i = 0; i < versions->count; i++) {
		GElf_Verdef definition;
		GElf_Verdaux name;

		if (!gelf_getverdef(versions->definitions, (int)at, &definition))
			return "";
		if (definition.vd_ndx == index && definition.vd_cnt > 0 &&
			gelf_getverdaux(versions->definitions, (int)(at + definition.vd_aux), &name)) {
			const char *text = elf_strptr(search->file->elf, versions->strings, name.vda_name);

			return text ? text : "";
		}
		if (definition.vd_next == 0)
			return "";
		at += definition.vd_next;
	}
	return "";
}

static void versions_find(const struct search *search, struct versions *ret)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_file_section(search->file->elf, ".gnu.version", &header);

	memset(ret, 0, sizeof(*ret));
	if (!section)
		return;
	ret->of_symbol = elf_getdata(section, NULL);
	section = elf_file_section(search->file->elf, ".gnu.version_d", &header);
	if (!section)
		return;
	ret->definitions = elf_getdata(section, NULL);
	ret->strings = header.sh_link;
	ret->count = header.sh_info;
}

static void add_place(struct search *search, const struct place *place)
{
	for (size_t i = 0; i < search->place_count && i < PLACES_MAX; i++) {
		struct place *known = &search->places[i];

		if (known->address != place->address)
			continue;
		known->is_local = known->is_local && place->is_local;
		known->is_default = known->is_default || place->is_default;
		if (place->size > known->size)
			known->size = place->size;
		return;
	}
	if (search->place_count < PLACES_MAX)
		search->places[search->place_count] = *place;
	search->place_count++;
}

static void sort_symbol(struct search *search, const GElf_Sym *symbol, struct place *place)
{
	unsigned int type = GELF_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF) {
		search->undefined = true;
		return;
	}
	if (!search->any_type) {
		if (type == STT_GNU_IFUNC) {
			search->ifunc = true;
			return;
		}
		if (type != STT_FUNC && type != STT_NOTYPE) {
			search->data = true;
			return;
		}
	}
	place->address = symbol->st_value;
	place->size = symbol->st_size;
	place->is_local = GELF_ST_BIND(symbol->st_info) == STB_LOCAL;
	add_place(search, place);
}

/* The linker writes versions into .symtab as part of the name: memcpy@@GLIBC_2.14. */
static bool split_version(const char *name, char *out, size_t size, struct place *ret)
{
	const char *at = strchr(name, '@');
	size_t length = at ? (size_t)(at - name) : strlen(name);

	if (length >= size)
		return false;
	memcpy(out, name, length);
	out[length] = '\0';
	if (at) {
		ret->is_default = at[1] == '@';
		(void)snprintf(ret->version, sizeof(ret->version), "%s", at + 1 + ret->is_default);
	}
	return true;
}

static void look_at_symbol(struct search *search, const struct versions *versions, size_t i, const GElf_Sym *symbol,
	const char *full)
{
	struct place place = { .is_default = true };
	unsigned int type = GELF_ST_TYPE(symbol->st_info);
	char name[CONTROL_SYMBOL_MAX];
	GElf_Versym version;

	if (!split_version(full, name, sizeof(name), &place) || name[0] == '\0')
		return;
	search->symbol_count++;
	if (strcmp(name, search->name) != 0) {
		if (symbol->st_shndx != SHN_UNDEF && (type == STT_FUNC || search->any_type))
			near_offer(&search->near, name);
		return;
	}
	if (versions && versions->of_symbol && gelf_getversym(versions->of_symbol, (int)i, &version)) {
		place.is_default = !(version & VERSION_HIDDEN);
		(void)snprintf(place.version, sizeof(place.version), "%s",
			version_name(search, versions, version & ~VERSION_HIDDEN));
	}
	if (search->version && strcmp(search->version, place.version) != 0)
		return;
	sort_symbol(search, symbol, &place);
}

static bool walk_table(void *context, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	struct search *search = context;
	/* The debug file's own copy of .dynsym has no bytes behind it. */
	const struct versions *versions = header->sh_type == SHT_DYNSYM ? &search->versions : NULL;
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	for (size_t i = 0; data && i <= INT_MAX && gelf_getsym(data, (int)i, &symbol); i++) {
		const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);

		if (name)
			look_at_symbol(search, versions, i, &symbol, name);
	}
	return true;
}

static int search_run(struct search *search, const struct elf_file *file, const char *symbol, bool any_type)
{
	struct place version = { 0 };

	memset(search, 0, sizeof(*search));
	search->file = file;
	if (!split_version(symbol, search->name, sizeof(search->name), &version))
		return -ENAMETOOLONG;
	search->any_type = any_type;
	if (strchr(symbol, '@'))
		search->version = strrchr(symbol, '@') + 1;
	near_init(&search->near, search->name);
	versions_find(search, &search->versions);
	elf_file_tables(file, walk_table, search);
	return 0;
}

/* The one place that the name stands for, or NULL: exported goes before local, the default version before
 * older ones; beyond that a name with several places is ambiguous. */
static const struct place *search_choose(const struct search *search)
{
	const struct place *best = NULL;
	unsigned int best_rank = 0, equals = 0;

	for (size_t i = 0; i < search->place_count && i < PLACES_MAX; i++) {
		const struct place *place = &search->places[i];
		unsigned int rank = 1U + (place->is_local ? 0 : 2) + (place->is_default ? 1 : 0);

		if (rank > best_rank) {
			best = place;
			best_rank = rank;
			equals = 0;
		} else if (rank == best_rank) {
			equals++;
		}
	}
	if (equals > 0 || (search->place_count > PLACES_MAX && best && best->is_local))
		return NULL;
	return best;
}

static int ambiguous(const struct search *search, struct failure *failure)
{
	int rc = failure_set(failure, TFAN_LOCATION, ENOTUNIQ, -1,
		"%s has %zu functions named \"%s\"; say which:", search->file->path, search->place_count, search->name);

	for (size_t i = 0; i < search->place_count && i < PLACES_MAX; i++) {
		const struct place *place = &search->places[i];
		uint64_t offset;

		if (place->version[0])
			failure_append(failure, " %s@%s", search->name, place->version);
		else if (elf_file_offset(search->file, place->address, true, &offset) == 0)
			failure_append(failure, " 0x%llx", (unsigned long long)offset);
	}
	if (search->place_count > PLACES_MAX)
		failure_append(failure, " ...");
	return rc;
}

static int not_found(const struct search *search, const char *symbol, struct failure *failure)
{
	const char *path = search->file->path;
	char near[512];

	if (search->ifunc)
		return failure_set(failure, TFAN_LOCATION, EINVAL, -1,
			"\"%s\" in %s is chosen when the program starts (IFUNC): probe one of the functions "
			"that it chooses from", symbol, path);
	if (search->data)
		return failure_set(failure, TFAN_LOCATION, EINVAL, -1, "\"%s\" in %s is data, not a function", symbol,
			path);
	if (search->undefined)
		return failure_set(failure, TFAN_LOCATION, ENOENT, -1,
			"\"%s\" is only used by %s; it is defined in one of the libraries that it is linked to",
			symbol, path);
	(void)near_text(&search->near, near, sizeof(near));
	if (search->symbol_count == 0)
		return failure_set(failure, TFAN_LOCATION, ENOENT, -1,
			"%s is stripped and has no names; give an offset in the file: 0x...", path);
	return failure_set(failure, TFAN_LOCATION, ENOENT, -1, "there is no symbol \"%s\" in %s%s%s", symbol, path,
		search->file->is_stripped ? ", which is stripped: only what it exports has a name" : "", near);
}

int elf_file_symbol(const struct elf_file *file, const char *symbol, uint64_t offset, uint64_t *ret,
	struct failure *failure)
{
	const struct place *place;
	struct search search;
	uint64_t found;

	if (search_run(&search, file, symbol, false) < 0 || search.place_count == 0)
		return not_found(&search, symbol, failure);
	place = search_choose(&search);
	if (!place)
		return ambiguous(&search, failure);
	if (place->size > 0 && offset >= place->size)
		return failure_set(failure, TFAN_LOCATION, ERANGE, -1, "\"%s\" in %s is only %llu bytes long", symbol,
			file->path, (unsigned long long)place->size);
	if (offset > UINT64_MAX - place->address ||
		elf_file_offset(file, place->address + offset, true, &found) < 0)
		return failure_set(failure, TFAN_LOCATION, EINVAL, -1, "\"%s\" in %s is not in a part that is executed",
			symbol, file->path);
	*ret = found;
	return 0;
}

int elf_file_address(const struct elf_file *file, const char *symbol, uint64_t *ret)
{
	const struct place *place;
	struct search search;

	if (search_run(&search, file, symbol, true) < 0)
		return -ENOENT;
	place = search_choose(&search);
	if (!place)
		return -ENOENT;
	*ret = place->address;
	return 0;
}
