#include "reader/rundown_details.h"

#include "base/cleanup.h"
#include "reader/build_id.h"
#include "reader/folder.h"
#include "reader/loop.h"
#include "reader/proc_file.h"
#include "reader/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int rundown_details_open(struct rundown_details *details, uint32_t what)
{
	*details = (struct rundown_details){ .what = what, .writer.fd = -1 };
	details->ids = calloc(RUNDOWN_IDS, sizeof(*details->ids));
	return details->ids ? state_writer_open(&details->writer, "tracefan-details") : -ENOMEM;
}

void rundown_details_release(struct rundown_details *details)
{
	state_writer_release(&details->writer);
	socket_table_release(&details->sockets);
	free(details->ids);
	details->ids = NULL;
}

int rundown_details_finish(struct rundown_details *details, uint64_t began)
{
	return state_writer_finish(&details->writer, began, loop_now());
}

static struct state_record head(const struct rundown_subject *subject, enum state_kind kind)
{
	return (struct state_record){
		.kind = (uint16_t)kind, .pid = subject->pid, .tid = subject->pid, .start = subject->start, .time = subject->time,
	};
}

/* ---- command lines ---- */

static void add_command(struct rundown_details *details, const struct rundown_subject *subject)
{
	struct state_command command = { .record = head(subject, STATE_COMMAND), .parent = subject->parent };
	CLEANUP_FREE char *arguments = NULL;
	char folder[PATH_MAX];
	size_t size = 0;
	int n = proc_file_link(subject->folder, "cwd", folder, sizeof(folder));

	if (n > 0)
		command.folder_size = (uint32_t)n;
	if (proc_file_read(subject->folder, "cmdline", &arguments, &size) == 0)
		command.command_size = size < STATE_RECORD_MAX / 2 ? (uint32_t)size : STATE_RECORD_MAX / 2;
	state_writer_add(&details->writer, &(struct state_piece){
		.record = &command,
		.size = sizeof(command),
		.texts = { { arguments, &command.command_size }, { folder, &command.folder_size } },
	});
}

/* ---- mappings ---- */

static uint32_t read_build_id(int fd, uint8_t ret[STATE_BUILD_ID_MAX])
{
	struct build_id_segment segments[BUILD_ID_SEGMENTS];
	uint8_t bytes[BUILD_ID_BYTES];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	int count = n > 0 ? build_id_segments(bytes, (size_t)n, segments) : 0;

	for (int i = 0; i < count; i++) {
		size_t room = segments[i].size < sizeof(bytes) ? (size_t)segments[i].size : sizeof(bytes), size;
		const uint8_t *id;

		if (segments[i].offset > INT64_MAX)
			continue;
		n = pread(fd, bytes, room, (off_t)segments[i].offset);
		size = n > 0 ? build_id_find(bytes, (size_t)n, segments[i].align, &id) : 0;
		if (size) {
			memcpy(ret, id, size);
			return (uint32_t)size;
		}
	}
	return 0;
}

/* The very file that is mapped: by its name, as the process sees it, if that still leads to it. What else it leads to is
 * looked at and not opened: to open a device may do something, and the name is the process's to give away. */
static int open_mapped(const struct rundown_subject *subject, const struct proc_mapping *mapping)
{
	char path[PATH_MAX + 8];
	CLEANUP_CLOSE int named = -1;
	struct stat file;
	int fd;

	if (mapping->path_size >= PATH_MAX || mapping->path[0] != '/')
		return -ENOENT;
	(void)snprintf(path, sizeof(path), "root%.*s", (int)mapping->path_size, mapping->path);
	named = openat(subject->folder, path, O_PATH | O_CLOEXEC);
	if (named < 0 || fstat(named, &file) < 0)
		return -errno;
	if (!S_ISREG(file.st_mode) || file.st_ino != mapping->inode)
		return -ESTALE;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", named);
	fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static const struct rundown_build_id *find_build_id(struct rundown_details *details, const struct rundown_subject *subject,
	const struct proc_mapping *mapping)
{
	const uint64_t device = makedev(mapping->major, mapping->minor);
	struct rundown_build_id *place = &details->ids[(mapping->inode ^ device * 31) % RUNDOWN_IDS];
	CLEANUP_CLOSE int fd = -1;

	if (place->inode == mapping->inode && place->device == device)
		return place;
	fd = open_mapped(subject, mapping);
	if (fd < 0)
		return NULL;
	*place = (struct rundown_build_id){ .device = device, .inode = mapping->inode };
	place->id_size = read_build_id(fd, place->id);
	return place;
}

static void add_mapping(struct rundown_details *details, const struct rundown_subject *subject, const struct proc_mapping *from)
{
	const struct rundown_build_id *id = find_build_id(details, subject, from);
	struct state_mapping mapping = {
		.record = head(subject, STATE_MAPPING),
		.from = from->from,
		.to = from->to,
		.offset = from->offset,
		.inode = from->inode,
		.major = from->major,
		.minor = from->minor,
		.path_size = (uint32_t)(from->path_size < PATH_MAX ? from->path_size : PATH_MAX),
		.build_id_size = id ? id->id_size : 0,
	};

	state_writer_add(&details->writer, &(struct state_piece){
		.record = &mapping,
		.size = sizeof(mapping),
		.texts = { { id ? id->id : NULL, &mapping.build_id_size }, { from->path, &mapping.path_size } },
	});
}

static void add_mappings(struct rundown_details *details, const struct rundown_subject *subject)
{
	CLEANUP_FREE char *text = NULL;
	struct proc_mapping mapping;
	size_t size, at = 0;

	if (proc_file_read(subject->folder, "maps", &text, &size) < 0)
		return;
	while (proc_maps_next(text, size, &at, &mapping) == 1) {
		if (mapping.executable && mapping.inode)
			add_mapping(details, subject, &mapping);
	}
}

/* ---- open files ---- */

static void add_socket(struct rundown_details *details, const struct rundown_subject *subject, int fd, uint64_t inode)
{
	const struct socket_entry *entry = socket_table_find(&details->sockets, inode);
	struct state_socket socket = { .record = head(subject, STATE_SOCKET), .fd = fd, .inode = inode };

	/* Another namespace than those that were met. */
	if (!entry) {
		socket_table_read(&details->sockets, subject->folder);
		entry = socket_table_find(&details->sockets, inode);
	}
	if (entry) {
		socket.family = entry->family;
		socket.type = entry->type;
		socket.protocol = entry->protocol;
		socket.state = entry->state;
		socket.local = entry->local;
		socket.remote = entry->remote;
		socket.path_size = entry->path_size;
	}
	state_writer_add(&details->writer, &(struct state_piece){
		.record = &socket,
		.size = sizeof(socket),
		.texts = { { entry ? details->sockets.texts + entry->path : NULL, &socket.path_size } },
	});
}

static void add_file(struct rundown_details *details, const struct rundown_subject *subject, int fds, const char *name)
{
	struct state_file file = { .record = head(subject, STATE_FILE), .fd = (int32_t)strtol(name, NULL, 10) };
	char path[PATH_MAX];
	uint64_t inode;
	int n = proc_file_link(fds, name, path, sizeof(path));

	/* Closed meanwhile. */
	if (n < 0)
		return;
	if (proc_link_is_socket(path, (size_t)n, &inode)) {
		if (details->what & STATE_WANT_SOCKETS)
			add_socket(details, subject, file.fd, inode);
		return;
	}
	if (!(details->what & STATE_WANT_FILES))
		return;
	file.path_size = (uint32_t)n;
	state_writer_add(&details->writer, &(struct state_piece){
		.record = &file, .size = sizeof(file), .texts = { { path, &file.path_size } },
	});
}

static void add_files(struct rundown_details *details, const struct rundown_subject *subject)
{
	DIR *dir = folder_open(subject->folder, "fd");
	const struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			add_file(details, subject, dirfd(dir), entry->d_name);
	}
	(void)closedir(dir);
}

void rundown_details_add(struct rundown_details *details, const struct rundown_subject *subject)
{
	details->mark = state_writer_mark(&details->writer);
	/* What the kernel's own threads have is the kernel's. */
	if (!details->what || subject->is_kernel)
		return;
	if (details->what & STATE_WANT_PROCESSES)
		add_command(details, subject);
	if (details->what & STATE_WANT_MAPPINGS)
		add_mappings(details, subject);
	if (details->what & (STATE_WANT_FILES | STATE_WANT_SOCKETS))
		add_files(details, subject);
}

void rundown_details_undo(struct rundown_details *details)
{
	state_writer_undo(&details->writer, &details->mark);
}
