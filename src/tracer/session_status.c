/* What a session knows, and the answers that say it. */
#include "tracer/session.h"

#include "tracer/snapshot.h"

#include "target/process.h"
#include "target/resident.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

uint64_t session_truncated(const struct session *session)
{
	struct unwind_counters counters = unwinder_counters(session->unwinder);
	uint64_t sum = 0;

	for (unsigned i = 0; i < TRUNCATED_COUNT; i++)
		sum += i == TRUNCATED_LIMIT ? 0 : counters.truncated[i];
	return sum;
}

uint64_t session_lost_events(const struct session *session)
{
	return engine_counters(session->engine).failed_reads - session->failed_reads_cleared + session->lost_tasks +
	       session->out_of_order;
}

void session_clear(struct session *session)
{
	heap_clear(session->heap);
	session->failed_reads_cleared = engine_counters(session->engine).failed_reads;
	/* Whose record was passed may write over another's, which is a loss of the time that begins. */
	session->failed_reads_cleared -= session->failed_reads_cleared > 0 && engine_may_be_overwritten(session->engine);
	session->out_of_order = 0;
}

bool session_is_exact(const struct session *session)
{
	struct heap_counters heap = heap_counters(session->heap);

	return heap_sampling(session->heap) == 0 && heap.unknown_frees == 0 && heap.lost_events == 0 && session->probe_gaps == 0 &&
	       session_lost_events(session) == 0 && engine_unwatched(session->engine) == 0 && !session->modules_failed &&
	       !engine_refusal(session->engine);
}

size_t session_memory(const struct session *session)
{
	return sizeof(*session) + link_memory(session->link) + vec_memory(&session->guards) + heap_memory(session->heap) +
	       stack_table_memory(session->stacks) + unwinder_memory(session->unwinder) + engine_memory(session->engine) +
	       target_memory(session->target);
}

/* By job control: whichever of its threads is in that stop, the process is. */
static bool is_stopped(const struct session *session)
{
	const struct target *target = session->target;

	if (session->released)
		return process_thread_state(target->pid, process_living_thread(target->pid)) == 'T';
	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i]->group_stopped)
			return true;
	}
	return false;
}

static void add_users_domain(struct wire_status *status, const struct heap_trace *trace)
{
	for (unsigned i = 0; i < WIRE_ALLOCATORS_MAX; i++) {
		if (status->user_domains[i].domain != 0 && status->user_domains[i].domain != trace->domain)
			continue;
		status->user_domains[i].domain = trace->domain;
		status->user_domains[i].live_bytes += trace->live_bytes;
		status->user_domains[i].live_blocks += trace->live_blocks;
		return;
	}
}

static int add_domain(void *context, const struct heap_trace *trace)
{
	struct wire_status *status = context;

	if (trace->domain >= DOMAIN_USER)
		add_users_domain(status, trace);
	if (trace->domain < WIRE_DOMAINS) {
		status->domains[trace->domain].live_bytes += trace->live_bytes;
		status->domains[trace->domain].live_blocks += trace->live_blocks;
	}
	return 0;
}

const char *session_hold_text(const struct session *session)
{
	if (session->released)
		return NULL;
	if (session->hold != HOLD_NOT)
		return hold_text(session, session->hold);
	if (session->exec_deadline_ns != 0)
		return "it executes a program or forks just now";
	if (session->waits_for_exec || session->release_due)
		return "the program that it executes has not begun yet";
	return session->leaving || !session->alone ? "it is being let go of" : NULL;
}

uint32_t session_task_count(const struct session *session)
{
	const struct target *target = session->target;

	return session->released ? (uint32_t)process_threads(target->pid) : (uint32_t)target->tasks.count;
}

void session_send_status(struct session *session, uint32_t serial)
{
	struct engine_counters counters = engine_counters(session->engine);
	struct target *target = session->target;
	const char *reason, *hold = session_hold_text(session);
	struct wire_status status = {
		.head = { WIRE_STATUS_REPLY, serial, target->pid, sizeof(status) },
		.counters = heap_counters(session->heap),
		.truncated_stacks = session_truncated(session),
		.probe_gaps = session->probe_gaps,
		.tracer_memory = session_memory(session),
		.block_memory = heap_block_memory(session->heap),
		.longest_stop_us = target->longest_stop_ns / NSEC_PER_USEC,
		.held_us = target->held_ns / NSEC_PER_USEC,
		.events = session->stops + counters.records,
		.engine = engine_has_ring(session->engine) ? ENGINE_RING : ENGINE_INT3,
		.children_not_followed = session->not_followed,
		.tasks = session_task_count(session),
		.probes = engine_probe_count(session->engine),
		.frames_limit = session->frames_limit,
		.pending_calls = engine_pending(session->engine),
		.exact = session_is_exact(session),
		.sample_bytes = heap_sampling(session->heap),
		.crash_safe = resident_is_safe(target, &reason),
		.stopped = is_stopped(session),
		.released = session->released,
		.ring_waits = counters.waits,
		.ring_readers = engine_readers(session->engine),
		.ring_stacks_ahead = counters.stacks_ahead,
		.ring_wait_ms = engine_has_ring(session->engine) ? session->ring_wait_ms : 0,
	};

	if (hold)
		snprintf(status.hold_reason, sizeof(status.hold_reason), "%s", hold);
	/* Nothing of ours stops it, whatever it does with SIGTRAP. */
	if (session->released) {
		status.crash_safe = true;
		reason = NULL;
	}
	heap_each_trace(session->heap, add_domain, &status);
	status.counters.lost_events += session_lost_events(session);
	if (session_engine_reason(session))
		snprintf(status.engine_reason, sizeof(status.engine_reason), "%s", session_engine_reason(session));
	else
		engine_ring_limits(session->engine, status.engine_reason, sizeof(status.engine_reason));
	if (reason)
		snprintf(status.crash_unsafe_reason, sizeof(status.crash_unsafe_reason), "%s", reason);
	link_send(session->link, &status, sizeof(status), -1);
}

/* The stacks of the found blocks travel as an image of a heap that holds nothing else. */
static int blocks_image(struct session *session, const struct heap_block *found, size_t count,
			struct wire_blocks *answer, int *ret_fd)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct heap *heap = heap_new(NULL, true, now_ns);
	int r = heap ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct alloc_event event = { .kind = ALLOC_BORN, .tid = (int32_t)found[i].thread,
					     .domain = found[i].domain, .stack = found[i].stack,
					     .time_ns = found[i].born_ns, .address = found[i].address,
					     .size = found[i].size };

		r = heap_apply(heap, &event);
		answer->block[i].address = found[i].address;
		answer->block[i].size = found[i].size;
		answer->block[i].domain = found[i].domain;
		answer->block[i].thread = found[i].thread;
		answer->block[i].trace = (uint32_t)heap_trace_index(heap, found[i].stack, found[i].domain);
		/* After a snapshot blocks are dated a little later than they were born. */
		answer->block[i].age_ns = now_ns > found[i].born_ns ? now_ns - found[i].born_ns : 0;
	}
	if (r == 0)
		r = snapshot_image(session, heap, true, ret_fd);
	heap_free(heap);
	return r;
}

void session_send_blocks(struct session *session, uint32_t serial, uint64_t address)
{
	struct heap_block found[WIRE_BLOCKS_MAX];
	size_t count = heap_find(session->heap, address, found, WIRE_BLOCKS_MAX);
	struct wire_blocks answer = { .head = { WIRE_BLOCKS, serial, session->target->pid, sizeof(answer) },
				      .count = (uint32_t)count };
	int fd, r = blocks_image(session, found, count, &answer, &fd);

	if (r < 0)
		session_fail(session->link, serial, session->target->pid, FAILURE_INTERNAL, 0,
			     "cannot look up the block: %s", strerror(-r));
	else
		link_send(session->link, &answer, sizeof(answer), fd);
}
