/* Which calls change names and attributes, and where in their arguments what stands. */
#ifndef TRACEFAN_WATCH_FILE_CALL_H
#define TRACEFAN_WATCH_FILE_CALL_H

#include <stddef.h>

enum file_op {
	FILE_OPEN, /* with O_CREAT: create */
	FILE_MKDIR,
	FILE_MKNOD,
	FILE_UNLINK, /* with AT_REMOVEDIR: rmdir */
	FILE_RMDIR,
	FILE_RENAME,
	FILE_LINK,
	FILE_SYMLINK,
	FILE_ATTRIB,
	FILE_CHDIR,
	FILE_DUP,
};

#define FILE_CALL_ARGS 5

/* A system call's arguments by number; -1: it has none. */
struct file_call {
	const char *name;
	enum file_op op;
	int dir, path;       /* the name that it is about, and what it is relative to */
	int new_dir, target; /* rename, link: the new one; symlink: the link */
	int flags;
	int fd;              /* instead of a name */
	const char *attribute;       /* FILE_ATTRIB: which */
	const char *condition;       /* of the entry; NULL: all */
};

/* NULL past the last. */
const struct file_call *file_call_at(size_t i);

/* A function of the C library: which of its arguments are names. */
struct file_function {
	const char *name;
	unsigned char first, second; /* from 1 on; 0: none */
};

const struct file_function *file_function_at(size_t i);

#endif
