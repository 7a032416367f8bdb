#include "file_server.h"

#include "live.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_NODE 2
#define REQUEST_MAX (1 << 17)
#define WRITE_MAX 4096

/* What test and server share. */
struct shared {
	atomic_bool mute;
	atomic_uint unanswered;
};

struct file_server {
	pid_t pid;
	const char *name, *path;
	const char *bytes;
	struct stat st;
	int device;
	struct shared *shared;
};

/* --- the server --- */

static void reply(const struct file_server *server, const struct fuse_in_header *in, int error, const void *data,
		  size_t len)
{
	struct fuse_out_header out = { .len = (uint32_t)(sizeof(out) + len), .error = -error, .unique = in->unique };
	struct iovec parts[2] = { { &out, sizeof(out) }, { (void *)(uintptr_t)data, len } };

	/* Who has asked may have gone. */
	if (writev(server->device, parts, 2) < 0 && errno != ENOENT)
		_exit(EXIT_FAILURE);
}

/* Never kept: each question about the file comes here. */
static struct fuse_attr attributes(const struct file_server *server, uint64_t node)
{
	struct fuse_attr attr = { .ino = node, .mode = S_IFDIR | 0755, .nlink = 1, .blksize = 4096 };

	if (node == FILE_NODE) {
		attr.mode = S_IFREG | 0755;
		attr.size = (uint64_t)server->st.st_size;
		attr.blocks = (attr.size + 511) / 512;
	}
	return attr;
}

static void answer_init(const struct file_server *server, const struct fuse_in_header *in)
{
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_write = WRITE_MAX, .max_background = 16, .congestion_threshold = 12 };

	reply(server, in, 0, &out, sizeof(out));
}

static void answer_lookup(const struct file_server *server, const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = { .nodeid = FILE_NODE, .attr = attributes(server, FILE_NODE) };

	if (in->nodeid != FUSE_ROOT_ID || strcmp(name, server->name) != 0)
		reply(server, in, ENOENT, NULL, 0);
	else
		reply(server, in, 0, &out, sizeof(out));
}

static void answer_getattr(const struct file_server *server, const struct fuse_in_header *in)
{
	struct fuse_attr_out out = { .attr = attributes(server, in->nodeid) };

	reply(server, in, 0, &out, sizeof(out));
}

static void answer_read(const struct file_server *server, const struct fuse_in_header *in,
			const struct fuse_read_in *request)
{
	size_t size = (size_t)server->st.st_size, left = request->offset < size ? size - request->offset : 0;

	reply(server, in, 0, server->bytes + (left ? request->offset : 0), left < request->size ? left : request->size);
}

static void answer(const struct file_server *server, const struct fuse_in_header *in, const void *body)
{
	struct fuse_open_out opened = { .fh = 1, .open_flags = FOPEN_KEEP_CACHE };

	switch (in->opcode) {
	case FUSE_INIT:
		answer_init(server, in);
		break;
	case FUSE_LOOKUP:
		answer_lookup(server, in, body);
		break;
	case FUSE_GETATTR:
		answer_getattr(server, in);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		reply(server, in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		answer_read(server, in, body);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		reply(server, in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(server, in, ENOSYS, NULL, 0);
	}
}

static bool is_waited_for(uint32_t opcode)
{
	return opcode != FUSE_RELEASE && opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET && opcode != FUSE_INTERRUPT;
}

static void serve(const struct file_server *server)
{
	static union {
		char bytes[REQUEST_MAX];
		struct fuse_in_header in;
	} request;

	for (;;) {
		ssize_t n = read(server->device, request.bytes, sizeof(request.bytes));

		if (n < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (n < (ssize_t)sizeof(request.in))
			_exit(EXIT_SUCCESS);        /* unmounted */
		if (server->shared->mute)
			atomic_fetch_add(&server->shared->unanswered, is_waited_for(request.in.opcode));
		else
			answer(server, &request.in, request.bytes + sizeof(request.in));
	}
}

/* --- the test's side --- */

static void own_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		live_skip("a file system cannot be mounted here: %s", strerror(errno));
}

static void map_backing(struct file_server *server, const char *backing)
{
	int fd = open(backing, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &server->st) < 0)
		live_fail("%s: %s", backing, strerror(errno));
	server->bytes = mmap(NULL, (size_t)server->st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	server->shared = mmap(NULL, sizeof(*server->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (server->bytes == MAP_FAILED || server->shared == MAP_FAILED)
		live_fail("mmap: %s", strerror(errno));
	close(fd);
}

struct file_server *file_server_start(const char *name, const char *backing)
{
	struct file_server *server = calloc(1, sizeof(*server));
	const char *folder = live_text("%s/served", live_folder());

	if (!server)
		live_fail("out of memory");
	server->name = name;
	server->path = live_text("%s/%s", folder, name);
	map_backing(server, backing);
	if (mkdir(folder, 0755) < 0)
		live_fail("%s: %s", folder, strerror(errno));
	own_mounts();
	server->device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (server->device < 0)
		live_skip("/dev/fuse: %s", strerror(errno));
	if (mount("served", folder, "fuse", MS_NOSUID | MS_NODEV,
		  live_text("fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other", server->device, (int)geteuid(),
			    (int)getegid())) < 0)
		live_skip("a file system cannot be mounted here: %s", strerror(errno));
	fflush(stdout);
	server->pid = fork();
	if (server->pid < 0)
		live_fail("fork: %s", strerror(errno));
	if (server->pid == 0)
		serve(server);
	/* The file system ends with its last descriptor. */
	close(server->device);
	return server;
}

const char *file_server_path(const struct file_server *server)
{
	return server->path;
}

void file_server_go_mute(struct file_server *server)
{
	char *text;

	/* What was mapped of it may not have been read yet. */
	if (file_read_text(server->path, (size_t)server->st.st_size, &text, NULL) < 0)
		live_fail("cannot read %s", server->path);
	free(text);
	server->shared->mute = true;
}

void file_server_speak(struct file_server *server)
{
	server->shared->mute = false;
}

unsigned file_server_unanswered(const struct file_server *server)
{
	return server->shared->unanswered;
}

void file_server_end(struct file_server *server)
{
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
}
