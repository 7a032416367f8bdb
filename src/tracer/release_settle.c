/* When a record of a process that is traced without ptrace has been open for so long that it is worth while to seize the process. */
#include "tracer/release.h"

#include "base/clock.h"

#include <errno.h>

#define PAUSE_LEAST_NS (100 * NSEC_PER_MSEC)   /* behind a try in vain: it has held all threads for a moment */
#define PAUSE_MOST_NS (2 * NSEC_PER_SEC)

static void begin(struct settling *settling, uint64_t position)
{
	if (settling->position == position)
		return;
	release_settling_end(settling);
	settling->position = position;
}

static void note_result(struct settling *settling, int result)
{
	uint64_t longer_ns = 2 * settling->pause_ns;

	if (result == 0) {
		settling->again_ns = settling->pause_ns = 0;
		return;
	}
	settling->pause_ns = longer_ns < PAUSE_LEAST_NS ? PAUSE_LEAST_NS : longer_ns < PAUSE_MOST_NS ? longer_ns : PAUSE_MOST_NS;
	settling->again_ns = clock_monotonic_ns() + settling->pause_ns;
}

/* Whether it has become too much. */
static bool is_too_much(struct settling *settling)
{
	uint64_t now_ns = clock_monotonic_ns(), since_ns = now_ns - settling->second_ns;
	bool much = settling->count > SETTLINGS_A_SECOND || settling->took_ns > since_ns / SETTLINGS_SHARE;

	if (since_ns >= NSEC_PER_SEC) {
		settling->busy = much && since_ns < 2 * NSEC_PER_SEC ? settling->busy + 1 : 0;
		settling->second_ns = now_ns;
		settling->count = 0;
		settling->took_ns = 0;
	}
	return settling->busy >= SETTLINGS_SECONDS;
}

static void hold(struct session *session, struct settling *settling)
{
	settling->busy = settling->count = 0;
	session->hold = HOLD_SIGNALS;
	session_fail(session->link, 0, session->target->pid, FAILURE_UNSUPPORTED, 0,
		     "it is traced with ptrace from now on: signals come too often in the midst of what it records");
}

enum settled release_settle_in_time(struct session *session, struct settling *settling, pid_t writer)
{
	uint64_t began_ns;
	bool held;
	int r;

	if (!session->released)
		return SETTLED_NOT;
	begin(settling, engine_ring_position(session->engine));
	if (!clock_passed(settling->again_ns) || !awaited_briefly(&settling->writer, session->target->pid, writer))
		return SETTLED_NOT;
	awaited_end(&settling->writer);
	link_beat(session->link, session->target->pid, LONG_STEP_MS);
	began_ns = clock_monotonic_ns();
	r = release_settle(session, is_too_much(settling), &held);
	settling->count++;
	settling->took_ns += clock_monotonic_ns() - began_ns;
	note_result(settling, r);
	if (held && r != -ESRCH)
		hold(session, settling);
	if (held)
		return SETTLED_AND_HELD;
	return r == 0 ? SETTLED : SETTLED_NOT;
}

void release_settling_end(struct settling *settling)
{
	awaited_end(&settling->writer);
	settling->position = UINT64_MAX;
}
