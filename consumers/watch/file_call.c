#include "consumers/watch/file_call.h"

#define NO (-1)

static const struct file_call calls[] = {
	/* name, op, dir, path, new_dir, target, flags, fd */
	{ "open", FILE_OPEN, NO, 0, NO, NO, 1, NO, NULL },
	{ "openat", FILE_OPEN, 0, 1, NO, NO, 2, NO, NULL },
	{ "creat", FILE_OPEN, NO, 0, NO, NO, NO, NO, NULL },
	{ "mkdir", FILE_MKDIR, NO, 0, NO, NO, NO, NO, NULL },
	{ "mkdirat", FILE_MKDIR, 0, 1, NO, NO, NO, NO, NULL },
	{ "mknod", FILE_MKNOD, NO, 0, NO, NO, NO, NO, NULL },
	{ "mknodat", FILE_MKNOD, 0, 1, NO, NO, NO, NO, NULL },
	{ "unlink", FILE_UNLINK, NO, 0, NO, NO, NO, NO, NULL },
	{ "unlinkat", FILE_UNLINK, 0, 1, NO, NO, 2, NO, NULL },
	{ "rmdir", FILE_RMDIR, NO, 0, NO, NO, NO, NO, NULL },
	{ "rename", FILE_RENAME, NO, 0, NO, 1, NO, NO, NULL },
	{ "renameat", FILE_RENAME, 0, 1, 2, 3, NO, NO, NULL },
	{ "renameat2", FILE_RENAME, 0, 1, 2, 3, 4, NO, NULL },
	{ "link", FILE_LINK, NO, 0, NO, 1, NO, NO, NULL },
	{ "linkat", FILE_LINK, 0, 1, 2, 3, NO, NO, NULL },
	{ "symlink", FILE_SYMLINK, NO, 0, NO, 1, NO, NO, NULL },
	{ "symlinkat", FILE_SYMLINK, NO, 0, 1, 2, NO, NO, NULL },
	{ "chmod", FILE_ATTRIB, NO, 0, NO, NO, NO, NO, "mode" },
	{ "fchmodat", FILE_ATTRIB, 0, 1, NO, NO, NO, NO, "mode" },
	{ "fchmodat2", FILE_ATTRIB, 0, 1, NO, NO, NO, NO, "mode" },
	{ "fchmod", FILE_ATTRIB, NO, NO, NO, NO, NO, 0, "mode" },
	{ "chown", FILE_ATTRIB, NO, 0, NO, NO, NO, NO, "owner" },
	{ "lchown", FILE_ATTRIB, NO, 0, NO, NO, NO, NO, "owner" },
	{ "fchownat", FILE_ATTRIB, 0, 1, NO, NO, NO, NO, "owner" },
	{ "fchown", FILE_ATTRIB, NO, NO, NO, NO, NO, 0, "owner" },
	/* Without a name it is about the descriptor. */
	{ "utimensat", FILE_ATTRIB, 0, 1, NO, NO, NO, 0, "times" },
	{ "futimesat", FILE_ATTRIB, 0, 1, NO, NO, NO, 0, "times" },
	{ "utimes", FILE_ATTRIB, NO, 0, NO, NO, NO, NO, "times" },
	{ "utime", FILE_ATTRIB, NO, 0, NO, NO, NO, NO, "times" },
	{ "setxattr", FILE_ATTRIB, NO, 0, NO, NO, NO, NO, "xattr" },
	{ "lsetxattr", FILE_ATTRIB, NO, 0, NO, NO, NO, NO, "xattr" },
	{ "fsetxattr", FILE_ATTRIB, NO, NO, NO, NO, NO, 0, "xattr" },
	{ "removexattr", FILE_ATTRIB, NO, 0, NO, NO, NO, NO, "xattr" },
	{ "lremovexattr", FILE_ATTRIB, NO, 0, NO, NO, NO, NO, "xattr" },
	{ "fremovexattr", FILE_ATTRIB, NO, NO, NO, NO, NO, 0, "xattr" },
	{ "chdir", FILE_CHDIR, NO, 0, NO, NO, NO, NO, NULL },
	{ "fchdir", FILE_CHDIR, NO, NO, NO, NO, NO, 0, NULL },
	{ "dup", FILE_DUP, NO, NO, NO, NO, NO, 0, NULL },
	{ "dup2", FILE_DUP, NO, NO, NO, NO, NO, 0, NULL },
	{ "dup3", FILE_DUP, NO, NO, NO, NO, NO, 0, NULL },
	/* F_DUPFD, F_DUPFD_CLOEXEC. */
	{ "fcntl", FILE_DUP, NO, NO, NO, NO, NO, 0, NULL, "cmd == 0 || cmd == 1030" },
};

const struct file_call *file_call_at(size_t i)
{
	return i < sizeof(calls) / sizeof(calls[0]) ? &calls[i] : NULL;
}

/* opendir does not come by open. */
static const struct file_function functions[] = {
	{ "open", 1, 0 }, { "openat", 2, 0 }, { "creat", 1, 0 }, { "opendir", 1, 0 },
	{ "mkdir", 1, 0 }, { "mkdirat", 2, 0 }, { "mknod", 1, 0 }, { "mknodat", 2, 0 },
	{ "unlink", 1, 0 }, { "unlinkat", 2, 0 }, { "rmdir", 1, 0 },
	{ "rename", 1, 2 }, { "renameat", 2, 4 }, { "renameat2", 2, 4 },
	{ "link", 1, 2 }, { "linkat", 2, 4 }, { "symlink", 1, 2 }, { "symlinkat", 1, 3 },
	{ "chmod", 1, 0 }, { "fchmodat", 2, 0 }, { "chown", 1, 0 }, { "lchown", 1, 0 }, { "fchownat", 2, 0 },
	{ "utimensat", 2, 0 }, { "utimes", 1, 0 }, { "utime", 1, 0 }, { "lutimes", 1, 0 },
	{ "setxattr", 1, 0 }, { "lsetxattr", 1, 0 }, { "removexattr", 1, 0 }, { "lremovexattr", 1, 0 },
	{ "chdir", 1, 0 },
};

const struct file_function *file_function_at(size_t i)
{
	return i < sizeof(functions) / sizeof(functions[0]) ? &functions[i] : NULL;
}
