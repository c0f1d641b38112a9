/* The state of the host's processes as records: layout only. Two kinds of blob are made of them.
 *
 *   the table    processes and threads. Made by the reader's helper for the router, or by the router, as of a place
 *                in the stream, for a consumer.
 *   the details  mappings, open files and sockets, and the command lines: made by the helper for the consumer, and
 *                passed on by the router, which does not look into it.
 *
 *   0      4      6      8     12    16       24      32
 *   +------+------+------+-----+-----+--------+-------+---------- - - -+-------+-----+
 *   | size | kind | flags| pid | tid | start  | time  | of its kind    | texts | pad |
 *   +------+------+------+-----+-----+--------+-------+---------- - - -+-------+-----+
 *
 * `size` covers everything and is a multiple of 8. Texts stand one behind the other in the order of their sizes, without
 * NULs: they are bytes as the kernel gave them. A blob ends with one STATE_END. */
#ifndef TRACEFAN_SHM_STATE_ABI_H
#define TRACEFAN_SHM_STATE_ABI_H

#include "shm/record_abi.h"

#include <stdint.h>

#define STATE_ALIGN      8
#define STATE_RECORD_MAX (64U << 10)
/* What a blob holds at most; more is left out, and STATE_END says so. */
#define STATE_BLOB_MAX   (1U << 30)
#define STATE_BUILD_ID_MAX 64

/* What is asked for. */
enum state_what {
	STATE_WANT_PROCESSES = 1 << 0,
	STATE_WANT_MAPPINGS = 1 << 1,
	STATE_WANT_FILES = 1 << 2,
	STATE_WANT_SOCKETS = 1 << 3,
};
#define STATE_WANT_ALL 15U

enum state_kind {
	STATE_PROCESS = 1, /* struct state_process: a process, with its first thread */
	STATE_THREAD = 2,  /* struct state_thread: each other thread */
	STATE_COMMAND = 3, /* struct state_command: details of a process */
	STATE_MAPPING = 4, /* struct state_mapping: an executable part of a mapped file */
	STATE_FILE = 5,    /* struct state_file */
	STATE_SOCKET = 6,  /* struct state_socket: an open descriptor that is one */
	STATE_END = 7,     /* struct state_end */
};

enum state_flag {
	STATE_IDS = 1 << 0,        /* user and group are known */
	STATE_IDS_PROVEN = 1 << 1, /* and for sure */
	STATE_PROVEN = 1 << 2,     /* it is known for sure that the thread is still this one */
	STATE_KERNEL = 1 << 3,     /* a thread of the kernel */
	STATE_NO_NEW_IDS = 1 << 4, /* no_new_privs */
	STATE_EXE = 1 << 5,        /* the executable is known */
	STATE_CGROUP = 1 << 6,     /* the cgroup is known */
};

struct state_record {
	uint32_t size;
	uint16_t kind;  /* enum state_kind */
	uint16_t flags; /* enum state_flag */
	int32_t pid;    /* of the process: the kernel's tgid */
	int32_t tid;
	uint64_t start; /* of the process: ns, CLOCK_BOOTTIME, rounded down to a tick where it was read */
	uint64_t time;  /* ns, CLOCK_MONOTONIC: the record holds from here on, up to the next event */
};
_Static_assert(sizeof(struct state_record) == 32, "state record");

struct state_ids {
	uint32_t uid, euid, suid, gid, egid;
};

struct state_process {
	struct state_record record;
	int32_t parent; /* -1: not known */
	struct state_ids ids;
	char comm[RECORD_COMM_SIZE]; /* NUL-padded */
	uint64_t cgroup;             /* its id in the unified hierarchy */
	uint32_t exe_size;           /* texts: the executable, the cgroup's path */
	uint32_t cgroup_size;
};
_Static_assert(sizeof(struct state_process) == 88, "state of a process");

struct state_thread {
	struct state_record record;
	uint64_t thread_start; /* as record.start, but of the thread */
	struct state_ids ids;
	char comm[RECORD_COMM_SIZE];
	uint32_t reserved;
};
_Static_assert(sizeof(struct state_thread) == 80, "state of a thread");

struct state_command {
	struct state_record record;
	int32_t parent;         /* as read; -1: not known */
	uint32_t command_size;  /* texts: arguments, each with a NUL behind it; the working directory */
	uint32_t folder_size;
	uint32_t reserved;
};
_Static_assert(sizeof(struct state_command) == 48, "command line of a process");

struct state_mapping {
	struct state_record record;
	uint64_t from, to;      /* addresses */
	uint64_t offset;        /* in the file */
	uint64_t inode;
	uint32_t major, minor;  /* device */
	uint32_t build_id_size; /* texts: the build id, 0: it has none or can't be read; the path */
	uint32_t path_size;
};
_Static_assert(sizeof(struct state_mapping) == 80, "state of a mapping");

struct state_file {
	struct state_record record;
	int32_t fd;
	uint32_t path_size; /* text: what /proc/PID/fd/FD points to */
};
_Static_assert(sizeof(struct state_file) == 40, "state of a file");

/* An address: IPv4 in the first four bytes, network order. */
struct state_address {
	uint8_t bytes[16];
	uint16_t port; /* host order */
	uint16_t reserved0;
	uint32_t reserved1;
};
_Static_assert(sizeof(struct state_address) == 24, "address of a socket");

struct state_socket {
	struct state_record record;
	int32_t fd;
	uint16_t family;   /* AF_INET, AF_INET6, AF_UNIX; 0: another */
	uint16_t type;     /* SOCK_STREAM, ...; 0: not known */
	uint16_t protocol; /* IPPROTO_TCP, ...; 0: none, or not known */
	uint16_t state;    /* the kernel's number: TCP_ESTABLISHED is 1 */
	uint32_t path_size; /* text: unix: its name; an abstract one begins with a NUL */
	uint64_t inode;
	struct state_address local, remote;
};
_Static_assert(sizeof(struct state_socket) == 104, "state of a socket");

struct state_end {
	struct state_record record;
	uint64_t left_out; /* records that found no room */
	uint64_t began;    /* ns, CLOCK_MONOTONIC */
};
_Static_assert(sizeof(struct state_end) == 48, "end of a state");

#endif
