/* Kills itself, by a seccomp filter, for a system call that it never makes but a tracer would.
 *
 * The filter kills the process for rt_sigaction and mmap.  Tally: blocks and bytes, one kept a round. */
#include "victim.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define KEPT_BYTES 100

static long blocks;

static void keep_one(void)
{
	volatile char *p = malloc(KEPT_BYTES); /* kept */

	if (!p)
		die("malloc failed");
	p[0] = 1;
	blocks++;
	say("blocks=%ld bytes=%ld", blocks, blocks * KEPT_BYTES);
}

int main(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	free(malloc(1));               /* the heap is there before the filter is */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die("no filter");
	obey(keep_one);
	return 0;
}
