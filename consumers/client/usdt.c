#include "consumers/client/usdt.h"

#include "base/checked.h"
#include "consumers/client/near.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTE_TYPE 3
#define SITES_MAX 1024

/* One note, its texts inside the section's data. */
struct note {
	uint64_t address, base, semaphore;
	const char *provider, *name, *args;
};

struct search {
	const struct elf_file *file;
	const char *provider, *name;
	uint64_t base; /* where .stapsdt.base is now: prelink moves it with the code, not in the notes */
	struct usdt_site *sites;
	size_t count, notes;
	struct near near;
	struct failure *failure;
};

static uint64_t load_word(const struct elf_file *file, const uint8_t *at)
{
	size_t size = file->is_64 ? 8 : 4;
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value = value << 8 | at[file->is_big_endian ? i : size - 1 - i];
	return value;
}

/* Takes a NUL-ended text off the front of [*at, end). */
static const char *take_text(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return text;
}

static bool read_note(const struct elf_file *file, const uint8_t *bytes, size_t size, struct note *ret)
{
	size_t word = file->is_64 ? 8 : 4;
	const char *at = (const char *)bytes + 3 * word, *end = (const char *)bytes + size;

	if (size < 3 * word)
		return false;
	ret->address = load_word(file, bytes);
	ret->base = load_word(file, bytes + word);
	ret->semaphore = load_word(file, bytes + 2 * word);
	ret->provider = take_text(&at, end);
	ret->name = ret->provider ? take_text(&at, end) : NULL;
	ret->args = ret->name ? take_text(&at, end) : NULL;
	return ret->args != NULL;
}

struct symbol_context {
	const struct elf_file *file;
	uint64_t address, offset; /* of the probe */
};

static int find_symbol(void *context, const char *symbol, int64_t *ret)
{
	const struct symbol_context *c = context;
	uint64_t address;
	int rc = elf_file_address(c->file, symbol, &address);

	if (rc == 0)
		*ret = (int64_t)(address - c->address);
	return rc;
}

static int add_site(struct search *search, const struct note *note)
{
	struct usdt_site *sites, *site;
	uint64_t shift = search->base && note->base ? search->base - note->base : 0;
	struct symbol_context context = { .file = search->file, .address = note->address + shift };

	if (search->count == SITES_MAX)
		return failure_set(search->failure, TFAN_LOCATION, E2BIG, -1, "%s:%s stands at more than %d places of %s",
			search->provider, search->name, SITES_MAX, search->file->path);
	sites = realloc(search->sites, (search->count + 1) * sizeof(*sites));
	if (!sites)
		return failure_set(search->failure, TFAN_FAILED, ENOMEM, -1, "out of memory");
	search->sites = sites;
	site = &sites[search->count];
	memset(site, 0, sizeof(*site));
	if (elf_file_offset(search->file, context.address, true, &context.offset) < 0)
		return failure_set(search->failure, TFAN_LOCATION, EINVAL, -1,
			"%s:%s of %s is not in a part that is executed", search->provider, search->name,
			search->file->path);
	site->offset = context.offset;
	if (note->semaphore &&
		elf_file_offset(search->file, note->semaphore + shift, false, &site->ref_offset) < 0)
		return failure_set(search->failure, TFAN_LOCATION, EINVAL, -1,
			"the semaphore of %s:%s is not in %s", search->provider, search->name, search->file->path);
	usdt_args_parse(note->args, search->file->machine, find_symbol, &context, &site->args);
	search->count++;
	return 0;
}

static int look_at_note(struct search *search, const struct note *note)
{
	char full[NEAR_NAME_MAX];
	int n;

	search->notes++;
	if (strcmp(note->provider, search->provider) == 0 && strcmp(note->name, search->name) == 0)
		return add_site(search, note);
	n = snprintf(full, sizeof(full), "%s:%s", note->provider, note->name);
	if (n > 0 && (size_t)n < sizeof(full))
		near_offer(&search->near, full);
	return 0;
}

static int walk_notes(struct search *search, Elf_Scn *section)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t at = 0, name_at, bytes_at;
	GElf_Nhdr header;
	int rc = 0;

	while (rc == 0 && data && data->d_buf && (at = gelf_getnote(data, at, &header, &name_at, &bytes_at)) > 0) {
		const uint8_t *bytes = data->d_buf;
		struct note note;

		if (header.n_type != NOTE_TYPE || header.n_namesz != sizeof("stapsdt") ||
			memcmp(bytes + name_at, "stapsdt", sizeof("stapsdt")) != 0)
			continue;
		if (read_note(search->file, bytes + bytes_at, header.n_descsz, &note))
			rc = look_at_note(search, &note);
	}
	return rc;
}

static int not_found(const struct search *search)
{
	char near[512];

	if (search->notes == 0)
		return failure_set(search->failure, TFAN_LOCATION, ENOENT, -1, "%s has no static probes",
			search->file->path);
	return failure_set(search->failure, TFAN_LOCATION, ENOENT, -1, "there is no static probe \"%s:%s\" in %s%s",
		search->provider, search->name, search->file->path, near_text(&search->near, near, sizeof(near)));
}

int usdt_find(const struct elf_file *file, const char *provider, const char *name, struct usdt_site **ret_sites,
	size_t *ret_count, struct failure *failure)
{
	struct search search = { .file = file, .provider = provider, .name = name, .failure = failure };
	char wanted[2 * CONTROL_NAME_MAX + 2];
	GElf_Shdr header;
	Elf_Scn *section;
	int rc = 0;

	(void)snprintf(wanted, sizeof(wanted), "%s:%s", provider, name);
	near_init(&search.near, wanted);
	if (elf_file_section(file->elf, ".stapsdt.base", &header))
		search.base = header.sh_addr;
	section = elf_file_section(file->elf, ".note.stapsdt", &header);
	if (section)
		rc = walk_notes(&search, section);
	if (rc == 0 && search.count == 0)
		rc = not_found(&search);
	if (rc) {
		free(search.sites);
		return rc;
	}
	*ret_sites = search.sites;
	*ret_count = search.count;
	return 0;
}
