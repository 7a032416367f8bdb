#define _GNU_SOURCE
#include "tracer/others.h"

#include "tracer/heal.h"

#include "target/process.h"
#include "target/resident.h"

#include "base/clock.h"

#include <time.h>
#include <unistd.h>

#define HEALER_MS 3000             /* somebody else's: it is done in milliseconds, and later where all threads wait in vfork */
#define HEALER_PAUSE_NS 2000000

static bool is_being_healed(const struct target *target)
{
	pid_t tracer = process_tracer(target->memory_tid);

	return tracer != 0 && heal_is_done_by(tracer);
}

static void wait_for_healer(const struct target *target, uint64_t deadline_ns)
{
	const struct timespec pause = { 0, HEALER_PAUSE_NS };

	while (is_being_healed(target) && !clock_passed(deadline_ns))
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

void others_heal(struct session *session)
{
	struct target *target = session->target;
	uint64_t deadline_ns = clock_monotonic_ns() + HEALER_MS * NSEC_PER_MSEC;
	enum heal_result result;
	char text[HEAL_TEXT_MAX];

	do {
		wait_for_healer(target, deadline_ns);
		if (process_tracer(target->memory_tid) != 0 || resident_find(target) == 0)
			return;
		result = heal_process(target->pid, target->start_time, text);
		if (result != HEAL_NOTHING)
			session_fail(session->link, 0, target->pid, FAILURE_INTERNAL, 0, "%s", text);
	} while (result == HEAL_NOTHING && is_being_healed(target) && !clock_passed(deadline_ns));
}

bool others_trace(struct target *target)
{
	pid_t tracer = process_tracer(target->memory_tid);
	raddr area = tracer == 0 || tracer == getpid() ? resident_find(target) : 0;

	return area != 0 && resident_is_parked(target, area);
}
