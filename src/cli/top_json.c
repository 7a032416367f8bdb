#include "cli/top_json.h"

#include "base/clock.h"
#include "cli/failure.h"
#include "cli/fetch.h"
#include "cli/show.h"
#include "varlink/codec.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static json_t *describe(const struct top *top)
{
	const struct snapshot *newest = top->newest;
	const struct heap_counters *counters = &newest->counters;
	json_t *document = codec_statistics(top->statistics, 0, true);
	json_t *head = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "pid", (json_int_t)newest->pid,
				 "time", (json_int_t)newest->taken_ns, "baseline", (json_int_t)top->baseline->taken_ns,
				 "traced_current", (json_int_t)counters->live_bytes,
				 "traced_peak", (json_int_t)counters->peak_bytes,
				 "blocks", (json_int_t)counters->live_blocks,
				 "allocations", (json_int_t)counters->allocations,
				 "frees", (json_int_t)counters->frees);

	if (document && head && json_object_update(head, document) == 0) {
		json_decref(document);
		return head;
	}
	json_decref(document);
	json_decref(head);
	return NULL;
}

/* *ret_last: of a process that is traced no more. */
static int refresh(struct top_json *json, bool *ret_last)
{
	struct snapshot *snapshot;
	char pid[16];
	int r;

	snprintf(pid, sizeof(pid), "%d", (int)json->pid);
	r = fetch_from_daemon(json->session, pid, top_wants_blocks(json->top), &snapshot);
	if (r != EXIT_DONE)
		return r;
	*ret_last = snapshot->id && *snapshot->id;
	r = top_take_snapshot(json->top, snapshot);
	snapshot_put(snapshot);
	return r < 0 ? fail_memory() : show_json(describe(json->top));
}

/* The signal that asked for the end; 0: `until` has come. */
static int wait_until(const struct top_json *json, uint64_t until_ns)
{
	struct pollfd watched = { .fd = json->signals, .events = POLLIN };
	struct signalfd_siginfo info;

	for (;;) {
		uint64_t now = clock_monotonic_ns();
		int timeout = now >= until_ns ? 0 : (int)((until_ns - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);

		if (poll(&watched, 1, timeout) == 0)
			return 0;
		while (read(json->signals, &info, sizeof(info)) == sizeof(info)) {
			if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP)
				return (int)info.ssi_signo;
			if (info.ssi_signo == SIGTSTP)
				raise(SIGSTOP);
		}
	}
}

int top_json_run(struct top_json *json, int *ret_signal)
{
	bool last = false;
	int r = EXIT_DONE;

	*ret_signal = 0;
	for (uint64_t done = 0; r == EXIT_DONE && !last && *ret_signal == 0; done++) {
		uint64_t begun = clock_monotonic_ns();

		if (done > 0 && done == json->refreshes_max)
			break;
		r = refresh(json, &last);
		if (r == EXIT_DONE && !last && done + 1 != json->refreshes_max)
			*ret_signal = wait_until(json, begun + json->interval_ns);
	}
	return r;
}
