/* The session's folder of sockets, DIRECTORY/NAME/: made, held by an flock(2), filled and removed.
 */
#ifndef TRACEFAN_READER_SESSION_DIR_H
#define TRACEFAN_READER_SESSION_DIR_H

#include "reader/tracedir.h"

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

#define SESSION_DIR_NO_GROUP ((gid_t)-1)

struct session_dir {
	int parent;
	int dir; /* its flock says who holds the session */
	char name[64];
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int router; /* listening sockets */
	int consumers;
	int control;
};
#define SESSION_DIR_NONE                                                                           \
	{                                                                                          \
		.parent = -1, .dir = -1, .router = -1, .consumers = -1, .control = -1              \
	}

/* Who may connect to what. */
struct session_dir_owners {
	uid_t router;
	gid_t group; /* SESSION_DIR_NO_GROUP: nobody but the owner */
	bool everybody; /* may connect as a consumer: the policy says what is theirs */
};

/* Makes and locks the folder. -EBUSY when a living reader holds it. On failure nothing is left and
 * *ret_problem says why. */
int session_dir_open(const char *directory, const char *session, struct session_dir *ret,
	struct tracedir_problem *ret_problem);

/* Makes the three sockets, with modes that don't depend on the umask, and listens; the consumers' may be there
 * already, taken over. */
int session_dir_listen(struct session_dir *dir, const struct session_dir_owners *owners,
	struct tracedir_problem *ret_problem);

/* Closes all, and leaves sockets and folder as they are. */
void session_dir_release(struct session_dir *dir);
/* Removes sockets and folder, and closes all. */
void session_dir_remove(struct session_dir *dir);

#endif
