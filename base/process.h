/* What every daemon does to itself at start-up, in this order: readiness socket, ids, capabilities,
 * no-new-privs. Each step is one call here; which ones a process takes is in its own sandbox.c. */
#ifndef TRACEFAN_BASE_PROCESS_H
#define TRACEFAN_BASE_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* Puts /dev/null in the place of each standard descriptor that is closed: it would be given to the next file or socket,
 * and then be written to. First of all. Returns 0 or -errno. */
int process_fill_standard(void);

/* Raises the limit of open files to the most that this process may have. Returns 0, or -EMFILE where that is less than
 * `needed`, with it in *ret_limit. */
int process_need_files(unsigned int needed, unsigned int *ret_limit);

/* Empties the bounding set, locks securebits so that uid 0 means no capability to execve(2), and becomes uid and gid for
 * good (real, effective and saved; no supplementary group) and proves that what was
 * before can't be taken back. A process that isn't root only checks that it is uid and gid already, and
 * keeps its groups, which it could not give up. Returns 0 or -errno (-EPERM: it is somebody else). */
int process_drop_ids(uid_t uid, gid_t gid);

/* Empties every capability set (permitted, effective, inheritable, ambient, bounding) and sets
 * no-new-privs. Works without any capability, too. Returns 0 or -errno. */
int process_drop_capabilities(void);

/* The same, but keeps what it has of these capabilities (bits by number) permitted and effective. */
int process_keep_capabilities(uint64_t kept);

/* Opens the socket that NOTIFY_SOCKET names (the protocol of sd_notify(3)); *ret_fd is -1 when the
 * variable isn't set. The caller owns *ret_fd. Returns 0 or -errno. */
int process_notify_open(int *ret_fd);

/* Sends one state, for example "READY=1", to such a socket; a no-op for -1. Returns 0 or -errno. */
int process_notify(int fd, const char *state);

#endif
