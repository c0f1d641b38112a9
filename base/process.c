#include "base/process.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Gives up the supplementary groups; one that is gid itself gives nothing more and may stay, so that a root
 * without capabilities can call this, too. */
static int drop_groups(gid_t gid)
{
	gid_t only;
	int count = getgroups(0, NULL);

	if (count == 0 || (count == 1 && getgroups(1, &only) == 1 && only == gid))
		return 0;
	return setgroups(0, NULL) < 0 ? -errno : 0;
}

/* What no execve(2) is to give back. Both need CAP_SETPCAP, which goes with uid 0, so it comes before either step; without
 * it the sets can't be used anyway, since no-new-privs is set. */
static void lock_capabilities(void)
{
	int bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);

	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (bits >= 0)
		(void)prctl(PR_SET_SECUREBITS,
			(unsigned long)bits | SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
				SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
			0, 0, 0);
}

int process_fill_standard(void)
{
	for (int i = 0; i < 3; i++) {
		if (fcntl(i, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
			return -errno;
	}
	return 0;
}

int process_need_files(unsigned int needed, unsigned int *ret_limit)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= needed)
		return 0;
	*ret_limit = (unsigned int)limit.rlim_cur;
	return -EMFILE;
}

int process_drop_ids(uid_t uid, gid_t gid)
{
	uid_t ruid, euid, suid;
	gid_t rgid, egid, sgid;
	int r;

	lock_capabilities();
	if (geteuid() == 0) {
		r = drop_groups(gid);
		if (r < 0)
			return r;
		if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
			return -errno;
	}
	if (getresuid(&ruid, &euid, &suid) < 0 || getresgid(&rgid, &egid, &sgid) < 0)
		return -errno;
	if (ruid != uid || euid != uid || suid != uid || rgid != gid || egid != gid || sgid != gid)
		return -EPERM;
	if (uid != 0 && setresuid(0, 0, 0) == 0)
		return -ENOTRECOVERABLE;
	return 0;
}

int process_drop_capabilities(void)
{
	return process_keep_capabilities(0);
}

int process_keep_capabilities(uint64_t kept)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2] = { { 0 } }, before[2];

	if (syscall(SYS_capget, &head, sets) < 0)
		return -errno;
	memcpy(before, sets, sizeof(before));
	for (int i = 0; i < 2; i++) {
		sets[i].permitted &= (uint32_t)(kept >> 32 * i);
		sets[i].effective = sets[i].permitted;
		sets[i].inheritable = 0;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	lock_capabilities();
	/* Who has nothing to give up needn't be allowed the call. */
	if (memcmp(before, sets, sizeof(before)) != 0 && syscall(SYS_capset, &head, sets) < 0)
		return -errno;
	return 0;
}

int process_notify_open(int *ret_fd)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP_CLOSE int fd = -1;
	size_t length;

	*ret_fd = -1;
	if (!name || !*name)
		return 0;
	length = strlen(name);
	if ((name[0] != '/' && name[0] != '@') || length >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, name, length);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int process_notify(int fd, const char *state)
{
	if (fd < 0)
		return 0;
	return send(fd, state, strlen(state), MSG_NOSIGNAL) < 0 ? -errno : 0;
}
