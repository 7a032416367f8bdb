#define _GNU_SOURCE              /* setresuid, close_range */

#include "symbol/confine.h"

#include "base/sanitized.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int limit(int resource, rlim_t max)
{
	struct rlimit now;

	if (getrlimit(resource, &now) < 0)
		return -errno;
	if (now.rlim_max < max)
		max = now.rlim_max;
	now.rlim_cur = now.rlim_max = max;
	return setrlimit(resource, &now) < 0 ? -errno : 0;
}

static int set_limits(void)
{
	int r = limit(RLIMIT_CORE, 0);

	/* AddressSanitizer reserves terabytes of address space for itself. */
	if (r == 0 && !SANITIZED)
		r = limit(RLIMIT_AS, CONFINE_MEMORY_MAX);
	if (r == 0)
		r = limit(RLIMIT_NOFILE, CONFINE_DESCRIPTORS_MAX);
	if (r == 0)
		r = limit(RLIMIT_FSIZE, CONFINE_FILE_MAX);
	if (r == 0)
		r = limit(RLIMIT_NPROC, 0);
	return r;
}

static int close_others(int keep_fd)
{
	if (keep_fd > 3 && close_range(3, (unsigned)keep_fd - 1, 0) < 0)
		return -errno;
	return close_range(keep_fd >= 3 ? (unsigned)keep_fd + 1 : 3, ~0U, 0) < 0 ? -errno : 0;
}

/* In a user namespace that maps no other user, root cannot become nobody; there it is only the
 * user who made the namespace, and losing the capabilities is all there is to lose. */
static int become_nobody(void)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return -errno;
	if (setresgid(CONFINE_ID, CONFINE_ID, CONFINE_ID) < 0 && errno != EINVAL)
		return -errno;
	if (setresuid(CONFINE_ID, CONFINE_ID, CONFINE_ID) < 0 && errno != EINVAL)
		return -errno;
	return 0;
}

static int drop_bounding_set(void)
{
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EPERM)
			return -errno;
	}
	return 0;
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 && errno != EINVAL)
		return -errno;
	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/* To read what it has, to compute, to answer and to end.  It opens nothing, connects to nobody, starts and executes
 * nothing, and looks at no other process. */
static const uint16_t calls[] = {
	SYS_read, SYS_pread64, SYS_lseek, SYS_write, SYS_writev, SYS_close, SYS_fcntl, SYS_fstat, SYS_newfstatat,
	SYS_readlink, SYS_memfd_create, SYS_ftruncate, SYS_recvmsg, SYS_sendmsg, SYS_mmap, SYS_mprotect, SYS_munmap,
	SYS_mremap, SYS_madvise, SYS_brk, SYS_futex, SYS_clock_gettime, SYS_clock_nanosleep, SYS_restart_syscall,
	SYS_getrandom, SYS_sysinfo, SYS_getpid, SYS_gettid, SYS_tgkill, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
	SYS_exit, SYS_exit_group,
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))
#define X32_CALLS 0x40000000u       /* numbers of the other ABI that this architecture has */

/* Other calls fail: libraries that try one go on without it. */
static int filter_calls(void)
{
	struct sock_filter code[CALLS + 8];
	struct sock_fprog program = { .filter = code };
	uint16_t n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, CALLS, 0);
	for (size_t i = 0; i < CALLS; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], (uint8_t)(CALLS - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = n;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0 ? -errno : 0;
}

int confine(int keep_fd)
{
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	/* libdw would ask a server for debug files; nothing here uses that part, and it has no name
	 * of a server to ask. */
	if (unsetenv("DEBUGINFOD_URLS") < 0)
		return -errno;
	umask(077);
	r = close_others(keep_fd);
	if (r == 0)
		r = set_limits();
	if (r == 0)
		r = drop_bounding_set();
	if (r == 0)
		r = become_nobody();
	if (r == 0)
		r = drop_capabilities();
	if (r < 0)
		return r;
	/* After the change of user, which resets both. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	/* AddressSanitizer makes more calls than these. */
	return SANITIZED ? 0 : filter_calls();
}
