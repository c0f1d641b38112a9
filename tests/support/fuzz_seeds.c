/* The driver of fuzz targets in every preset but fuzz: runs each seed as it is, then cut short at many
 * places, and with bytes changed at many places. Always the same inputs, so that a failure repeats. */
#include "tests/support/fuzz.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Places per seed and kind of damage: all of a short seed, evenly spread ones of a long seed. */
#define PLACES 256

/* Gives the target a copy of exactly `size` bytes, with `mask` flipped in the byte `at`. */
static int run(const uint8_t *bytes, size_t size, size_t at, uint8_t mask)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy && size)
		return -ENOMEM;
	if (size)
		memcpy(copy, bytes, size);
	if (at < size)
		copy[at] ^= mask;
	fuzz_one_input(copy, size);
	free(copy);
	return 0;
}

static int run_seed(const uint8_t *bytes, size_t size)
{
	static const uint8_t masks[] = { 0x01, 0x80, 0xff };
	size_t step = size / PLACES + 1;
	int r = run(bytes, size, size, 0);

	for (size_t at = 0; at < size && r == 0; at += step)
		r = run(bytes, at, at, 0);
	for (size_t at = 0; at < size && r == 0; at += step)
		for (size_t i = 0; i < sizeof(masks) && r == 0; i++)
			r = run(bytes, size, at, masks[i]);
	return r;
}

static int read_file(int dir, const char *name, uint8_t **ret, size_t *ret_size)
{
	CLEANUP_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	CLEANUP_FREE uint8_t *bytes = NULL;
	size_t size, have = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	size = (size_t)st.st_size;
	bytes = malloc(size + 1);
	if (!bytes)
		return -ENOMEM;
	while (have < size) {
		ssize_t n = read(fd, bytes + have, size - have);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		have += (size_t)n;
	}
	*ret = TAKE_PTR(bytes);
	*ret_size = size;
	return 0;
}

/* Returns the number of seeds that ran, or -errno. */
static int run_folder(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int r = 0, count = 0;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (r == 0 && (entry = readdir(dir))) {
		CLEANUP_FREE uint8_t *bytes = NULL;
		size_t size = 0;

		if (entry->d_name[0] == '.')
			continue;
		r = read_file(dirfd(dir), entry->d_name, &bytes, &size);
		if (r == 0)
			r = run_seed(bytes, size);
		if (r < 0)
			fprintf(stderr, "%s/%s: %s\n", path, entry->d_name, strerror(-r));
		count++;
	}
	(void)closedir(dir);
	return r < 0 ? r : count;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int count = run_folder(argv[i]);

		if (count < 0) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-count));
			return 1;
		}
		total += count;
	}
	if (total == 0) {
		fprintf(stderr, "no seeds: a fuzz target needs at least one\n");
		return 1;
	}
	printf("%d seeds\n", total);
	return 0;
}
