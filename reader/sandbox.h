/* What the reader gives up before it serves anybody. */
#ifndef TRACEFAN_READER_SANDBOX_H
#define TRACEFAN_READER_SANDBOX_H

/* The last step of the start: everything that needs a right has been opened and registered. Returns
 * 0 or -errno. */
int sandbox_enter(void);

#endif
