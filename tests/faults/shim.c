/* Between the tracer and the system: every call is counted, and one fails as the test has said.  See faults.h. */
#define _GNU_SOURCE
#include "faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libelf.h>
#include <elfutils/libdw.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct faults *faults;
static uint32_t is_healer;
static int64_t blind_until_ms;

#define REAL(result, name, ...) \
	extern result __real_##name(__VA_ARGS__); \
	extern result __wrap_##name(__VA_ARGS__)

REAL(int, open, const char *path, int flags, ...);
REAL(void *, mmap, void *at, size_t len, int protection, int flags, int fd, off_t offset);

static void __attribute__((constructor)) begin(int argc, char **argv)
{
	const char *path = getenv(FAULTS_VARIABLE);
	const struct rlimit no_core = { 0, 0 };
	int fd = path ? __real_open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = __real_mmap(NULL, sizeof(*faults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return;
	setrlimit(RLIMIT_CORE, &no_core);
	is_healer = argc > 1 && (strcmp(argv[1], "--heal") == 0 || strcmp(argv[1], "--stand-by") == 0);
	faults = at;
}

static void end_by(int sig)
{
	signal(sig, SIG_DFL);
	if (sig == SIGABRT)
		abort();
	raise(sig);
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* True: this call fails now; *ret_error says how.  errno is the caller's business then. */
static bool fails(enum fault_call call, int *ret_error)
{
	uint32_t number;

	if (!faults || !__atomic_load_n(&faults->armed, __ATOMIC_ACQUIRE) || faults->in_healers != is_healer)
		return false;
	number = __atomic_add_fetch(&faults->counts[call], 1, __ATOMIC_RELAXED);
	if (faults->kind == FAULT_NONE || faults->call != call ||
	    (faults->kind == FAULT_FROM_THEN ? number < faults->at : number != faults->at))
		return false;
	__atomic_add_fetch(&faults->hit, 1, __ATOMIC_RELAXED);
	if (faults->kind == FAULT_SEGV)
		end_by(SIGSEGV);
	if (faults->kind == FAULT_ABORT)
		end_by(SIGABRT);
	if (faults->kind == FAULT_LATE) {
		blind_until_ms = now_ms() + FAULT_LATE_MS;
		return false;
	}
	*ret_error = faults->error;
	return true;
}

static bool fails_with_errno(enum fault_call call)
{
	int error;

	if (!fails(call, &error))
		return false;
	errno = error == FAULT_SHORT ? EIO : error;
	return true;
}

/* How much of what was asked for may be done; negative: nothing, errno is set. */
static ssize_t allowed(enum fault_call call, size_t asked)
{
	int error;

	if (!fails(call, &error))
		return (ssize_t)asked;
	if (error == FAULT_SHORT && asked > 1)
		return (ssize_t)(asked / 2);
	errno = error == FAULT_SHORT ? EIO : error;
	return -1;
}

/* --- ptrace and waiting --- */

static enum fault_call ptrace_call(int request)
{
	switch (request) {
	case PTRACE_SEIZE: return FAULT_PTRACE_SEIZE;
	case PTRACE_INTERRUPT: return FAULT_PTRACE_INTERRUPT;
	case PTRACE_CONT: return FAULT_PTRACE_CONT;
	case PTRACE_SYSCALL: return FAULT_PTRACE_SYSCALL;
	case PTRACE_LISTEN: return FAULT_PTRACE_LISTEN;
	case PTRACE_DETACH: return FAULT_PTRACE_DETACH;
	case PTRACE_GETREGS: return FAULT_PTRACE_GETREGS;
	case PTRACE_SETREGS: return FAULT_PTRACE_SETREGS;
	case PTRACE_POKEUSER: return FAULT_PTRACE_POKEUSER;
	case PTRACE_PEEKTEXT: return FAULT_PTRACE_PEEKTEXT;
	case PTRACE_POKETEXT: return FAULT_PTRACE_POKETEXT;
	case PTRACE_GETSIGMASK: return FAULT_PTRACE_GETSIGMASK;
	case PTRACE_SETSIGMASK: return FAULT_PTRACE_SETSIGMASK;
	case PTRACE_GETSIGINFO: return FAULT_PTRACE_GETSIGINFO;
	case PTRACE_SETSIGINFO: return FAULT_PTRACE_SETSIGINFO;
	case PTRACE_GETEVENTMSG: return FAULT_PTRACE_GETEVENTMSG;
	default: return FAULT_PTRACE_SETOPTIONS;
	}
}

long __real_ptrace(int request, ...);
long __wrap_ptrace(int request, ...);
long __wrap_ptrace(int request, ...)
{
	va_list args;
	void *at, *data;
	pid_t tid;

	va_start(args, request);
	tid = va_arg(args, pid_t);
	at = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	/* The tracer asks itself whether ptrace is forbidden altogether: that is not about a target. */
	if (tid != getpid() && fails_with_errno(ptrace_call(request)))
		return -1;
	return __real_ptrace(request, tid, at, data);
}

REAL(int, waitid, idtype_t type, id_t id, siginfo_t *info, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	if (fails_with_errno(FAULT_WAITID))
		return -1;
	if ((options & WNOHANG) && blind_until_ms != 0 && now_ms() < blind_until_ms) {
		info->si_pid = 0;
		return 0;
	}
	return __real_waitid(type, id, info, options);
}

/* --- memory --- */

REAL(ssize_t, process_vm_readv, pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
     unsigned long remote_count, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
				unsigned long remote_count, unsigned long flags)
{
	ssize_t can = allowed(FAULT_PROCESS_VM_READV, local->iov_len);
	struct iovec part = { local->iov_base, (size_t)can };

	if (can < 0)
		return -1;
	return (size_t)can == local->iov_len ?
	       __real_process_vm_readv(pid, local, local_count, remote, remote_count, flags) :
	       __real_process_vm_readv(pid, &part, 1, remote, remote_count, flags);
}

REAL(ssize_t, pread, int fd, void *buf, size_t len, off_t offset);
ssize_t __wrap_pread(int fd, void *buf, size_t len, off_t offset)
{
	ssize_t can = allowed(FAULT_PREAD, len);

	return can < 0 ? -1 : __real_pread(fd, buf, (size_t)can, offset);
}

REAL(ssize_t, pwrite, int fd, const void *buf, size_t len, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t len, off_t offset)
{
	ssize_t can = allowed(FAULT_PWRITE, len);

	return can < 0 ? -1 : __real_pwrite(fd, buf, (size_t)can, offset);
}

void *__wrap_mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
	return fails_with_errno(FAULT_MMAP) ? MAP_FAILED : __real_mmap(at, len, protection, flags, fd, offset);
}

/* --- calls without a function of their own --- */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if ((number == SYS_pidfd_open && fails_with_errno(FAULT_PIDFD_OPEN)) ||
	    (number == SYS_kcmp && fails_with_errno(FAULT_KCMP)))
		return -1;
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* --- files --- */

int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (flags & (O_CREAT | __O_TMPFILE)) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	return fails_with_errno(FAULT_OPEN) ? -1 : __real_open(path, flags, mode);
}

REAL(DIR *, opendir, const char *path);
DIR *__wrap_opendir(const char *path)
{
	return fails_with_errno(FAULT_OPENDIR) ? NULL : __real_opendir(path);
}

REAL(struct dirent *, readdir, DIR *dir);
struct dirent *__wrap_readdir(DIR *dir)
{
	return fails_with_errno(FAULT_READDIR) ? NULL : __real_readdir(dir);
}

REAL(ssize_t, readlink, const char *path, char *buf, size_t space);
ssize_t __wrap_readlink(const char *path, char *buf, size_t space)
{
	return fails_with_errno(FAULT_READLINK) ? -1 : __real_readlink(path, buf, space);
}

REAL(int, stat, const char *path, struct stat *ret);
int __wrap_stat(const char *path, struct stat *ret)
{
	return fails_with_errno(FAULT_STAT) ? -1 : __real_stat(path, ret);
}

REAL(int, fstat, int fd, struct stat *ret);
int __wrap_fstat(int fd, struct stat *ret)
{
	return fails_with_errno(FAULT_FSTAT) ? -1 : __real_fstat(fd, ret);
}

REAL(ssize_t, read, int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	ssize_t can = allowed(FAULT_READ, len);

	return can < 0 ? -1 : __real_read(fd, buf, (size_t)can);
}

REAL(ssize_t, write, int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
	ssize_t can = allowed(FAULT_WRITE, len);

	return can < 0 ? -1 : __real_write(fd, buf, (size_t)can);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
	va_list args;
	long argument;

	va_start(args, command);
	argument = va_arg(args, long);
	va_end(args);
	return fails_with_errno(FAULT_FCNTL) ? -1 : __real_fcntl(fd, command, argument);
}

REAL(int, memfd_create, const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags)
{
	return fails_with_errno(FAULT_MEMFD_CREATE) ? -1 : __real_memfd_create(name, flags);
}

REAL(int, pipe2, int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags)
{
	return fails_with_errno(FAULT_PIPE) ? -1 : __real_pipe2(fds, flags);
}

/* --- the daemon --- */

REAL(ssize_t, sendmsg, int sock, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int sock, const struct msghdr *message, int flags)
{
	return fails_with_errno(FAULT_SENDMSG) ? -1 : __real_sendmsg(sock, message, flags);
}

REAL(ssize_t, recvmsg, int sock, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int sock, struct msghdr *message, int flags)
{
	return fails_with_errno(FAULT_RECVMSG) ? -1 : __real_recvmsg(sock, message, flags);
}

REAL(int, socketpair, int domain, int type, int protocol, int fds[2]);
int __wrap_socketpair(int domain, int type, int protocol, int fds[2])
{
	return fails_with_errno(FAULT_SOCKETPAIR) ? -1 : __real_socketpair(domain, type, protocol, fds);
}

REAL(int, eventfd, unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags)
{
	return fails_with_errno(FAULT_EVENTFD) ? -1 : __real_eventfd(value, flags);
}

REAL(int, signalfd, int fd, const sigset_t *mask, int flags);
int __wrap_signalfd(int fd, const sigset_t *mask, int flags)
{
	return fails_with_errno(FAULT_EVENTFD) ? -1 : __real_signalfd(fd, mask, flags);
}

/* --- itself --- */

REAL(pid_t, fork, void);
pid_t __wrap_fork(void)
{
	return fails_with_errno(FAULT_FORK) ? -1 : __real_fork();
}

REAL(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *context)
{
	int error;

	return fails(FAULT_THREAD, &error) ? error : __real_pthread_create(thread, attr, run, context);
}

int __real_prctl(int option, ...);
int __wrap_prctl(int option, ...);
int __wrap_prctl(int option, ...)
{
	unsigned long a[4];
	va_list args;

	va_start(args, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(args, unsigned long);
	va_end(args);
	return fails_with_errno(FAULT_PRCTL) ? -1 : __real_prctl(option, a[0], a[1], a[2], a[3]);
}

REAL(int, setresuid, uid_t real, uid_t effective, uid_t saved);
int __wrap_setresuid(uid_t real, uid_t effective, uid_t saved)
{
	return fails_with_errno(FAULT_SETIDS) ? -1 : __real_setresuid(real, effective, saved);
}

REAL(int, setresgid, gid_t real, gid_t effective, gid_t saved);
int __wrap_setresgid(gid_t real, gid_t effective, gid_t saved)
{
	return fails_with_errno(FAULT_SETIDS) ? -1 : __real_setresgid(real, effective, saved);
}

REAL(int, setgroups, size_t count, const gid_t *groups);
int __wrap_setgroups(size_t count, const gid_t *groups)
{
	return fails_with_errno(FAULT_SETIDS) ? -1 : __real_setgroups(count, groups);
}

REAL(void *, malloc, size_t size);
void *__wrap_malloc(size_t size)
{
	return fails_with_errno(FAULT_MALLOC) ? NULL : __real_malloc(size);
}

REAL(void *, calloc, size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	return fails_with_errno(FAULT_CALLOC) ? NULL : __real_calloc(count, size);
}

REAL(void *, realloc, void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
	return fails_with_errno(FAULT_REALLOC) ? NULL : __real_realloc(old, size);
}

REAL(char *, strdup, const char *text);
char *__wrap_strdup(const char *text)
{
	return fails_with_errno(FAULT_STRDUP) ? NULL : __real_strdup(text);
}

/* --- libraries: what comes out of memory that cannot be had inside, or a crash in them --- */

REAL(Elf *, elf_begin, int fd, Elf_Cmd command, Elf *of);
Elf *__wrap_elf_begin(int fd, Elf_Cmd command, Elf *of)
{
	return fails_with_errno(FAULT_LIBELF) ? NULL : __real_elf_begin(fd, command, of);
}

REAL(Elf_Data *, elf_getdata, Elf_Scn *section, Elf_Data *data);
Elf_Data *__wrap_elf_getdata(Elf_Scn *section, Elf_Data *data)
{
	return fails_with_errno(FAULT_LIBELF) ? NULL : __real_elf_getdata(section, data);
}

REAL(Elf *, elf_memory, char *image, size_t size);
Elf *__wrap_elf_memory(char *image, size_t size)
{
	return fails_with_errno(FAULT_LIBELF) ? NULL : __real_elf_memory(image, size);
}

REAL(Dwarf_CFI *, dwarf_getcfi_elf, Elf *elf);
Dwarf_CFI *__wrap_dwarf_getcfi_elf(Elf *elf)
{
	return fails_with_errno(FAULT_LIBDW) ? NULL : __real_dwarf_getcfi_elf(elf);
}

REAL(int, dwarf_cfi_addrframe, Dwarf_CFI *cache, Dwarf_Addr address, Dwarf_Frame **ret_frame);
int __wrap_dwarf_cfi_addrframe(Dwarf_CFI *cache, Dwarf_Addr address, Dwarf_Frame **ret_frame)
{
	return fails_with_errno(FAULT_LIBDW) ? -1 : __real_dwarf_cfi_addrframe(cache, address, ret_frame);
}

REAL(int, _Ux86_64_step, void *cursor);
int __wrap__Ux86_64_step(void *cursor)
{
	return fails_with_errno(FAULT_LIBUNWIND) ? -1 : __real__Ux86_64_step(cursor);
}
