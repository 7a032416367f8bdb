#define _GNU_SOURCE
#include "target/rights.h"

#include "target/access.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PTRACE_BIT (1u << CAP_SYS_PTRACE)      /* in the first word */
#define YAMA_NO_ATTACH 3

struct capabilities {
	struct __user_cap_data_struct word[_LINUX_CAPABILITY_U32S_3];
};

static int get(struct capabilities *ret)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &header, ret->word) < 0 ? -errno : 0;
}

static int set(unsigned permitted, unsigned effective)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct capabilities capabilities;

	memset(&capabilities, 0, sizeof(capabilities));
	capabilities.word[0].permitted = permitted;
	capabilities.word[0].effective = effective;
	return syscall(SYS_capset, &header, capabilities.word) < 0 ? -errno : 0;
}

bool rights_yama_asks(void)
{
	int scope = access_yama_scope();

	return scope > 0 && scope < YAMA_NO_ATTACH;
}

int rights_keep_ptrace(void)
{
	struct capabilities now;
	int r = get(&now);

	return r < 0 ? r : set(now.word[0].permitted & PTRACE_BIT, 0);
}

void rights_drop(void)
{
	set(0, 0);
}

bool rights_bound_by_yama(void)
{
	struct capabilities now;

	return rights_yama_asks() && get(&now) == 0 && !(now.word[0].permitted & PTRACE_BIT);
}

bool rights_raise(void)
{
	struct capabilities now;

	if (get(&now) < 0 || !(now.word[0].permitted & PTRACE_BIT) || (now.word[0].effective & PTRACE_BIT))
		return false;
	return set(now.word[0].permitted, PTRACE_BIT) == 0;
}

bool rights_raise_for(pid_t pid)
{
	return access_but_for_yama(pid) && rights_raise();
}

void rights_lower(void)
{
	struct capabilities now;

	if (get(&now) == 0)
		set(now.word[0].permitted, 0);
}

static bool read_memory(pid_t pid, uint64_t at, void *buf, size_t len)
{
	struct iovec local = { buf, len }, remote = { (void *)(uintptr_t)at, len };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

bool rights_read_memory(pid_t pid, uint64_t at, void *buf, size_t len)
{
	bool done = read_memory(pid, at, buf, len);

	if (!done && errno == EPERM && rights_raise_for(pid)) {
		done = read_memory(pid, at, buf, len);
		rights_lower();
	}
	return done;
}
