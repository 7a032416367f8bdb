#include "target/signals.h"

#include "target/process.h"
#include "target/ptrace.h"

#include "base/fd.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_TEXT_MAX 65536

/* "SigPnd:" and "ShdPnd:" are asked for apart from the masks that process.h knows. */
static uint64_t pending(const struct task *task, const char *key)
{
	char path[64], *text, *at;
	uint64_t set = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", task->tid);
	if (file_read_text(path, STATUS_TEXT_MAX, &text, NULL) < 0)
		return 0;
	at = strstr(text, key);
	if (at)
		set = strtoull(at + strlen(key), NULL, 16);
	free(text);
	return set;
}

bool task_signal_is_due(const struct task *task)
{
	uint64_t blocked;

	return ptrace_getsigmask(task->tid, &blocked) == 0 &&
	       ((pending(task, "\nSigPnd:") | pending(task, "\nShdPnd:")) & ~blocked) != 0;
}

bool task_signal_is_pending(const struct task *task, int sig)
{
	return pending(task, "\nSigPnd:") & (1ULL << (sig - 1));
}

bool task_ignores_signal(const struct task *task, int sig)
{
	const uint64_t bit = 1ULL << (sig - 1);
	uint64_t blocked, ignored, caught;

	if (process_signal_masks(task->tid, &blocked, &ignored, &caught) < 0)
		return false;
	if (ignored & bit)
		return true;
	return !(caught & bit) && (sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH);
}
