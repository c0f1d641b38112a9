#include "consumers/watch/path.h"

#include <stdlib.h>
#include <string.h>

/* One component behind `out`, whose text has `used` bytes and begins with a slash unless it is empty. */
static size_t path_add(char *out, size_t used, const char *part, size_t size)
{
	if (size == 0 || (size == 1 && part[0] == '.'))
		return used;
	if (size == 2 && part[0] == '.' && part[1] == '.') {
		while (used > 0 && out[--used] != '/')
			;
		return used;
	}
	out[used] = '/';
	memcpy(out + used + 1, part, size);
	return used + 1 + size;
}

static size_t path_add_all(char *out, size_t used, const char *path)
{
	while (*path) {
		size_t size = strcspn(path, "/");

		used = path_add(out, used, path, size);
		path += size;
		path += *path == '/';
	}
	return used;
}

char *path_resolve(const char *base, const char *name)
{
	size_t used = 0;
	char *out;

	if (name[0] != '/' && !base)
		return NULL;
	out = malloc((base ? strlen(base) : 0) + strlen(name) + 3);
	if (!out)
		return NULL;
	if (name[0] != '/')
		used = path_add_all(out, used, base);
	used = path_add_all(out, used, name);
	if (used == 0)
		out[used++] = '/';
	out[used] = '\0';
	return out;
}

bool path_inside(const char *folder, const char *path)
{
	size_t size = strlen(folder);

	if (size == 1)
		return true;
	return strncmp(folder, path, size) == 0 && (path[size] == '/' || path[size] == '\0');
}
