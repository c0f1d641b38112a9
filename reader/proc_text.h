/* What /proc says, taken apart. Pure: bytes in, struct out. Programs choose parts of these bytes (their names, the
 * names of their files), so nothing but the kernel's own framing is relied upon. */
#ifndef TRACEFAN_READER_PROC_TEXT_H
#define TRACEFAN_READER_PROC_TEXT_H

#include "shm/state_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* /proc/PID/stat, /proc/PID/task/TID/stat */
struct proc_stat {
	int32_t id, parent;
	char state;
	uint64_t threads;            /* of its process */
	char comm[RECORD_COMM_SIZE]; /* NUL-padded; of a kernel worker without what it works on */
	uint64_t start;              /* ticks since the system started, of 10 ms */
	bool is_kernel;
	bool has_ended;              /* with all its threads: only its exit status is still there */
};
/* Returns 0 or -EBADMSG. */
int proc_stat_parse(const char *text, size_t size, struct proc_stat *ret);

/* /proc/PID/status */
struct proc_status {
	int32_t process; /* Tgid */
	struct state_ids ids;
	bool no_new_ids;
};
int proc_status_parse(const char *text, size_t size, struct proc_status *ret);

/* The path in the unified hierarchy in /proc/PID/cgroup. Returns 0 or -ENOENT: it has none. */
int proc_cgroup_parse(const char *text, size_t size, const char **ret_path, size_t *ret_size);

/* A line of /proc/PID/maps. */
struct proc_mapping {
	uint64_t from, to, offset, inode;
	uint32_t major, minor;
	bool executable;
	const char *path;
	size_t path_size;
};
/* Returns 1, 0 (there is none behind `*at`) or -EBADMSG. */
int proc_maps_next(const char *text, size_t size, size_t *at, struct proc_mapping *ret);

/* A line of /proc/PID/net/{tcp,tcp6,udp,udp6,raw,raw6}, or of /proc/PID/net/unix. */
struct proc_socket {
	uint64_t inode;
	uint16_t type, state;
	struct state_address local, remote;
	const char *path; /* unix: as the kernel prints it, with '@' for a NUL of an abstract name */
	size_t path_size;
};
/* Lines that hold no socket, such as the heading, are passed over. Returns 1 or 0 (there is none behind `*at`). */
int proc_net_next(const char *text, size_t size, size_t *at, struct proc_socket *ret);
int proc_unix_next(const char *text, size_t size, size_t *at, struct proc_socket *ret);

/* The inode in "socket:[INODE]". */
bool proc_link_is_socket(const char *text, size_t size, uint64_t *ret_inode);

#endif
