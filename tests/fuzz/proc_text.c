/* Any bytes as each of the files of /proc that the helper takes apart: programs choose parts of them. */
#include "reader/proc_text.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void inside(const uint8_t *bytes, size_t size, const char *part, size_t part_size)
{
	const uint8_t *at = (const uint8_t *)part;

	if (part_size && (at < bytes || part_size > size || (size_t)(at - bytes) > size - part_size))
		abort();
}

static void sockets(const uint8_t *bytes, size_t size)
{
	const char *text = (const char *)bytes;
	struct proc_socket socket;
	size_t at = 0;

	while (proc_net_next(text, size, &at, &socket)) {
		if (at > size || socket.path_size)
			abort();
	}
	at = 0;
	while (proc_unix_next(text, size, &at, &socket)) {
		if (at > size)
			abort();
		inside(bytes, size, socket.path, socket.path_size);
	}
}

void fuzz_one_input(const uint8_t *bytes, size_t size)
{
	const char *text = (const char *)bytes, *path;
	struct proc_mapping mapping;
	struct proc_status status;
	struct proc_stat stat;
	size_t at = 0, length;
	uint64_t inode;

	if (proc_stat_parse(text, size, &stat) == 0 && (stat.id < 0 || stat.parent < 0 || stat.comm[RECORD_COMM_SIZE - 1]))
		abort();
	(void)proc_status_parse(text, size, &status);
	if (proc_cgroup_parse(text, size, &path, &length) == 0)
		inside(bytes, size, path, length);
	while (proc_maps_next(text, size, &at, &mapping) == 1) {
		if (at > size)
			abort();
		inside(bytes, size, mapping.path, mapping.path_size);
	}
	sockets(bytes, size);
	(void)proc_link_is_socket(text, size, &inode);
}
