/* workload_open FOLDER: makes openat(2) calls with known flags and modes, and prints each as "FLAGS MODE", in
 * order, with the system call's own numbers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	int flags;
	unsigned int mode;
} opens[] = {
	{ "made", O_WRONLY | O_CREAT | O_EXCL, 0640 },
	{ "made", O_RDONLY, 0 },
	{ "made", O_RDWR | O_APPEND | O_CLOEXEC, 0 },
	{ "missing", O_RDONLY | O_NOFOLLOW, 0 },
	{ ".", O_PATH | O_DIRECTORY, 0 },
	{ ".", O_RDWR | O_TMPFILE, 0600 },
	/* A mode that no O_CREAT asks for is an argument all the same. */
	{ "made", O_RDONLY | O_NONBLOCK, 07777 },
};

int main(int argc, char **argv)
{
	int folder;

	if (argc != 2) {
		fprintf(stderr, "usage: workload_open FOLDER\n");
		return 2;
	}
	folder = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0) {
		fprintf(stderr, "workload_open: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	/* A probe in the kernel can't read what is not in memory yet. */
	for (size_t i = 0; i < sizeof(opens) / sizeof(opens[0]); i++)
		(void)*(volatile const char *)opens[i].name;
	for (size_t i = 0; i < sizeof(opens) / sizeof(opens[0]); i++) {
		long fd = syscall(SYS_openat, folder, opens[i].name, opens[i].flags, opens[i].mode);

		if (fd >= 0)
			(void)close((int)fd);
		printf("%d %u\n", opens[i].flags, opens[i].mode);
	}
	return 0;
}
