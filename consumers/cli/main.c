/* tracefan: the command line. What it can do is in verb.c. */
#include "consumers/cli/verb.h"

#include "base/exit_status.h"

#include <fcntl.h>
#include <stdbool.h>

/* A standard descriptor that is closed would be given to the next file or socket, and then be written to. In its place
 * comes one for which reads and writes fail as for a closed one. False: there is no /dev/null. */
static bool fill_standard_descriptors(void)
{
	static const int flags[] = { O_WRONLY, O_RDONLY, O_RDONLY };

	for (int i = 0; i < 3; i++) {
		/* The lowest that is free: this one, since those below it are taken by now. */
		if (fcntl(i, F_GETFD) < 0 && open("/dev/null", flags[i]) != i)
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	if (!fill_standard_descriptors())
		return EXIT_FAILED;
	return verb_main(argc, argv);
}
