/* What the reader gives up before it serves anybody. */
#ifndef TRACEFAN_READER_SANDBOX_H
#define TRACEFAN_READER_SANDBOX_H

#include "base/confine/confine.h"

/* The folders that the session works in, open; -1 where it has none (a replay has no tracefs). */
struct sandbox_folders {
	int tracefs;
	int instance;
	int sessions; /* the parent of */
	int session;
};

/* The last step of the start: everything that needs a right has been opened and registered. After
 * it the reader has no capability, no file but those of sandbox.c's table and no system call but
 * those of its other table. Returns 0 or -errno, which has been logged. */
int sandbox_enter(const struct sandbox_folders *folders, enum confine_mode mode);

#endif
