/* tracefan: the command line. What it can do is in verb.c. */
#include "consumers/cli/verb.h"

int main(int argc, char **argv)
{
	return verb_main(argc, argv);
}
