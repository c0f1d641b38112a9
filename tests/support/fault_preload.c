/* Loaded into a program under test by LD_PRELOAD: counts its calls of one class and lets one of them fail.
 *
 *   TRACEFAN_FAULT_CLASS   alloc, map, send, tracefs or descriptor
 *   TRACEFAN_FAULT_AT      the number of the call that fails, from 1 on; 0: none
 *   TRACEFAN_FAULT_REPORT  a file of at least sizeof(struct report) bytes: what was counted
 *
 * `tracefs` are the writes to descriptors that were opened for writing: in tracefan-reader, which writes to no other
 * files, those are control files of tracefs. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#define SITES 60000
#define FDS   1024

/* Of the callers that make a place in the code. */
#define DEPTH     2
#define FRAME_MAX (256U << 10)

enum class { CLASS_NONE, CLASS_ALLOC, CLASS_MAP, CLASS_SEND, CLASS_TRACEFS, CLASS_DESCRIPTOR };

struct report {
	uint64_t count;        /* calls so far */
	uint64_t failed;       /* 1: the call was made, and failed */
	uint64_t sites[SITES]; /* of each call: where it came from, within its file */
};

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

typedef void *map_fn(void *, size_t, int, int, int, off_t);

static struct report *report;
static enum class class;
static uint64_t at;
static bool for_writing[FDS];

/* Where in its file a call comes from. False: from a library that does not survive each failure of its own. What the C
 * library allocates fails where it is called, below; libseccomp frees twice. */
static bool find_site(const void *caller, uint64_t *ret)
{
	Dl_info info;

	if (!dladdr(caller, &info))
		return false;
	/* Which file it is, is of no matter: two places at one distance are taken for one seldom enough. */
	*ret = (uint64_t)((const char *)caller - (const char *)info.dli_fbase);
	return !strstr(info.dli_fname, "/libc.so") && !strstr(info.dli_fname, "/ld-linux") && !strstr(info.dli_fname, "/libseccomp.so");
}

/* With the callers of the caller, as far as their frames can be followed: helpers are called from many places. */
static uint64_t add_callers(uint64_t site, void *const *frame)
{
	for (int i = 0; i < DEPTH; i++) {
		void *const *next = frame[0];
		uint64_t more;

		if (next <= frame || (size_t)((const char *)next - (const char *)frame) > FRAME_MAX || ((uintptr_t)next & 7) ||
			!find_site(next[1], &more))
			break;
		site = site * UINT64_C(0x9e3779b97f4a7c15) + more;
		frame = next;
	}
	return site;
}

/* Whether this call is to fail. */
static bool fails(enum class of, const void *caller, void *const *frame, int error)
{
	struct report *to = report;
	uint64_t site;

	if (!to || of != class)
		return false;
	/* dladdr may allocate nothing, but who knows. */
	report = NULL;
	if (!find_site(caller, &site)) {
		report = to;
		return false;
	}
	if (to->count < SITES)
		to->sites[to->count] = add_callers(site, frame);
	to->count++;
	report = to;
	if (to->count != at)
		return false;
	to->failed = 1;
	errno = error;
	return true;
}

#define FAILS(of, error) fails(of, __builtin_return_address(0), __builtin_frame_address(0), error)

__attribute__((constructor)) static void begin(void)
{
	static const char *const names[] = { "", "alloc", "map", "send", "tracefs", "descriptor" };
	const char *name = getenv("TRACEFAN_FAULT_CLASS"), *path = getenv("TRACEFAN_FAULT_REPORT");
	const char *number = getenv("TRACEFAN_FAULT_AT");
	void *map;
	int fd;

	if (!name || !path || !number)
		return;
	for (unsigned int i = 1; i < sizeof(names) / sizeof(names[0]); i++)
		class = strcmp(name, names[i]) == 0 ? (enum class)i : class;
	at = strtoull(number, NULL, 10);
	/* Not for the programs that this one starts. */
	(void)unsetenv("LD_PRELOAD");
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	map = ((map_fn *)dlsym(RTLD_NEXT, "mmap"))(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)syscall(SYS_close, fd);
	report = map == MAP_FAILED ? NULL : map;
}

/* The next definition of the function that it stands in. */
#define NEXT(type) ((type)dlsym(RTLD_NEXT, __func__))

void *malloc(size_t size)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **ret, size_t align, size_t size)
{
	void *memory = FAILS(CLASS_ALLOC, ENOMEM) ? NULL : __libc_memalign(align, size);

	if (!memory)
		return ENOMEM;
	*ret = memory;
	return 0;
}

char *strdup(const char *text)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : NEXT(char *(*)(const char *))(text);
}

char *strndup(const char *text, size_t size)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : NEXT(char *(*)(const char *, size_t))(text, size);
}

int vasprintf(char **ret, const char *format, va_list list)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? -1 : NEXT(int (*)(char **, const char *, va_list))(ret, format, list);
}

int asprintf(char **ret, const char *format, ...)
{
	va_list list;
	int r = -1;

	va_start(list, format);
	if (!FAILS(CLASS_ALLOC, ENOMEM))
		r = ((int (*)(char **, const char *, va_list))dlsym(RTLD_NEXT, "vasprintf"))(ret, format, list);
	va_end(list);
	return r;
}

DIR *opendir(const char *path)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : NEXT(DIR *(*)(const char *))(path);
}

DIR *fdopendir(int fd)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : NEXT(DIR *(*)(int))(fd);
}

FILE *fopen(const char *path, const char *mode)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : NEXT(FILE *(*)(const char *, const char *))(path, mode);
}

char *realpath(const char *path, char *resolved)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : NEXT(char *(*)(const char *, char *))(path, resolved);
}

/* The databases of users and groups. */
struct group *getgrnam(const char *name)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : NEXT(struct group *(*)(const char *))(name);
}

struct group *getgrgid(gid_t gid)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : NEXT(struct group *(*)(gid_t))(gid);
}

struct passwd *getpwnam(const char *name)
{
	return FAILS(CLASS_ALLOC, ENOMEM) ? NULL : NEXT(struct passwd *(*)(const char *))(name);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (FAILS(CLASS_MAP, ENOMEM))
		return MAP_FAILED;
	return NEXT(map_fn *)(address, size, protection, flags, fd, offset);
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
	if (FAILS(CLASS_SEND, ENOBUFS))
		return -1;
	return NEXT(ssize_t (*)(int, const void *, size_t, int))(fd, bytes, size, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (FAILS(CLASS_SEND, ENOBUFS))
		return -1;
	return NEXT(ssize_t (*)(int, const struct msghdr *, int))(fd, message, flags);
}

ssize_t sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length)
{
	if (FAILS(CLASS_SEND, ENOBUFS))
		return -1;
	return NEXT(ssize_t (*)(int, const void *, size_t, int, const struct sockaddr *, socklen_t))(fd, bytes, size, flags, to, length);
}

static bool is_for_writing(int fd)
{
	return fd >= 0 && fd < FDS && for_writing[fd];
}

ssize_t write(int fd, const void *bytes, size_t size)
{
	if (is_for_writing(fd) && FAILS(CLASS_TRACEFS, EIO))
		return -1;
	return syscall(SYS_write, fd, bytes, size);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	if (is_for_writing(fd) && FAILS(CLASS_TRACEFS, EIO))
		return -1;
	return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

static int opened(int fd, int flags)
{
	if (fd >= 0 && fd < FDS)
		for_writing[fd] = (flags & O_ACCMODE) != O_RDONLY;
	return fd;
}

int open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
	va_end(list);
	if (FAILS(CLASS_DESCRIPTOR, EMFILE))
		return -1;
	return opened((int)syscall(SYS_openat, AT_FDCWD, path, flags, mode), flags);
}

int openat(int folder, const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
	va_end(list);
	if (FAILS(CLASS_DESCRIPTOR, EMFILE))
		return -1;
	return opened((int)syscall(SYS_openat, folder, path, flags, mode), flags);
}

int close(int fd)
{
	if (fd >= 0 && fd < FDS)
		for_writing[fd] = false;
	return (int)syscall(SYS_close, fd);
}

int memfd_create(const char *name, unsigned int flags)
{
	return FAILS(CLASS_DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int pipe2(int fds[2], int flags)
{
	return FAILS(CLASS_DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_pipe2, fds, flags);
}

int socket(int domain, int type, int protocol)
{
	return FAILS(CLASS_DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
	return FAILS(CLASS_DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_socketpair, domain, type, protocol, fds);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	return FAILS(CLASS_DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_accept4, fd, address, length, flags);
}

int epoll_create1(int flags)
{
	return FAILS(CLASS_DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_epoll_create1, flags);
}

int timerfd_create(int clock, int flags)
{
	return FAILS(CLASS_DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_timerfd_create, clock, flags);
}

int signalfd(int fd, const sigset_t *mask, int flags)
{
	return FAILS(CLASS_DESCRIPTOR, EMFILE) ? -1 : (int)syscall(SYS_signalfd4, fd, mask, 8, flags);
}
