/* A reader that takes over from one that was killed: the router that lived on is asked for the session by way of the
 * consumers' socket, which it listens on. Without a living router nothing is taken over. */
#ifndef TRACEFAN_READER_SUCCESSOR_H
#define TRACEFAN_READER_SUCCESSOR_H

#include "reader/reader.h"

/* True where the session is one that can be taken over: live, and nobody's own. */
bool successor_possible(const struct reader *reader);

/* Looks for a living router. Returns 1 (there is one: its connection is in reader->inherited, and the consumers' listening
 * socket in the session's folder), 0 (there is none) or -errno, with everything said. */
int successor_greet(struct reader *reader);

/* Ends the living router of a session whose reader is dead, if there is one, and waits until it is gone. Returns 0 or -errno. */
int successor_end_router(const struct session_dir *dir);

/* Takes over instance and probes. Returns 0 or -errno, with everything said. */
int successor_adopt(struct reader *reader, int root);

#endif
