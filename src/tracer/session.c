#include "tracer/session.h"

#include "tracer/guard.h"
#include "tracer/release.h"
#include "tracer/snapshot.h"

#include "model/snapshot.h"
#include "ring/layout.h"
#include "target/loader.h"
#include "target/ptrace.h"
#include "target/resident.h"

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_PAUSE_NS (2 * NSEC_PER_MSEC)      /* in which threads are let go, between two times that room is made for those that run */

void session_fail(struct link *link, uint32_t serial, pid_t pid, enum wire_failure failure, pid_t other,
		  const char *format, ...)
{
	struct wire_failed failed = { .head = { WIRE_FAILED, serial, pid, sizeof(failed) }, .failure = failure,
				      .other_tracer = other };
	va_list args;

	if (serial == 0)
		failed.head.type = WIRE_LOG;
	va_start(args, format);
	vsnprintf(failed.text, sizeof(failed.text), format, args);
	va_end(args);
	link_send(link, &failed, sizeof(failed), -1);
}

void session_say_farewell(struct session *session, enum wire_failure failure, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(session->farewell, sizeof(session->farewell), format, args);
	va_end(args);
	session_fail(session->link, 0, session->target->pid, failure, 0, "let go: %s", session->farewell);
}

/* --- the tables of one heap: a process's life from attach or exec to exec or exit --- */

static void free_tables(struct session *session)
{
	engine_free(session->engine);
	unwinder_free(session->unwinder);
	heap_free(session->heap);
	stack_table_free(session->stacks);
	session->engine = NULL;
	session->unwinder = NULL;
	session->heap = NULL;
	session->stacks = NULL;
}

/* It is of the process's cgroup: half of what that has left at most, with what goes beside the ring. */
uint64_t session_ring_size(pid_t pid)
{
	uint64_t left = cgroup_memory_left(pid, CGROUP_MOUNT) / 2, size = RING_SIZE_DEFAULT;

	while (size >= RING_SIZE_MIN && left < size + RING_CONTROL_SIZE)
		size /= 2;
	return size >= RING_SIZE_MIN ? size : 0;
}

static int new_engine(struct session *session)
{
	const struct engine_sink sink = session_sink(session);
	const struct ring_options options = { .size = session->ring_size, .wait_ms = session->ring_wait_ms,
					      .alone = session->alone, .sample_bytes = session->sample_bytes,
					      .readers = session->ring_readers };
	int r = engine_new(session->target, session->unwinder, &sink, session->frames_limit + SESSION_SPARE_FRAMES,
			   &session->described, &session->engine);

	session->failed_reads_cleared = 0;
	if (r == 0 && session->wants_ring && described_arguments(&session->described) <= RING_ARGUMENTS && session->ring_size > 0)
		engine_want_ring(session->engine, &options);
	/* Known from before, when this one is in another's place. */
	if (r == 0 && session->checks_leaks)
		guard_refuse_ring(session);
	return r;
}

const char *session_engine_reason(const struct session *session)
{
	if (!session->wants_ring)
		return NULL;
	if (described_arguments(&session->described) > RING_ARGUMENTS)
		return "a described allocator is asked for its fourth argument, or a later one, which int3 alone sees";
	if (session->ring_size == 0)
		return "its cgroup is so near its limit of memory that a ring might have it killed";
	return session->engine ? engine_ring_refusal(session->engine) : NULL;
}

/* What is known and there. */
static int plan_known(struct session *session)
{
	struct target *target = session->target;
	int r = 0;

	for (uint32_t id = 0; r == 0 && id < session->modules_known; id++) {
		const struct module *module = &target->modules.modules.items[id];

		/* Those that are back are planned with the new ones. */
		if (module->mapped && !module->back && !module->piece && module->inode != 0 && target_module_fd(target, id) >= 0)
			r = engine_plan_module(session->engine, id, target_module_fd(target, id));
	}
	return r;
}

int session_replace_engine(struct session *session)
{
	struct engine *old = session->engine;
	int r = new_engine(session);

	if (r < 0)
		return r;
	engine_free(old);
	return plan_known(session);
}

int session_renew_engine(struct session *session)
{
	struct target *target = session->target;
	struct engine *old = session->engine;
	int r = new_engine(session);

	if (r < 0)
		return r;
	engine_free(old);
	bp_drop_all(target);
	resident_forget(target);
	session->loader_hook = NULL;
	session->orphans_seen = 0;
	session->tasks_at_attach = 0;
	for (size_t i = 0; i < target->slacks.count; i++)
		target->slacks.items[i].used = false;
	for (size_t i = 0; i < session->guards.count; i++) {
		session->guards.items[i].tried = false;
		session->guards.items[i].address = 0;
	}
	return plan_known(session);
}

static int new_tables(struct session *session, bool from_start)
{
	struct target *target = session->target;
	int r = -ENOMEM;

	session->stacks = stack_table_new(session->stack_nodes_max);
	memset(&session->misuses, 0, sizeof(session->misuses));
	session->heap_from_start = from_start;
	session->heap = heap_new(&session->limits, from_start, clock_monotonic_ns());
	if (session->stacks)
		session->unwinder = unwinder_new(&target->modules, session->stacks);
	if (session->heap && session->unwinder)
		r = new_engine(session);
	if (r < 0)
		free_tables(session);
	else
		unwinder_set_translation(session->unwinder, resident_translate, target);
	return r;
}

/* The daemon has parsed them before. */
static int take_allocators(struct session *session, const struct wire_allocator *allocators)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < WIRE_ALLOCATORS_MAX; i++) {
		struct allocator allocator;
		char *reason = NULL;

		if (allocators[i].domain == 0)
			continue;
		r = allocator_parse(allocators[i].text, &allocator, &reason);
		if (r == 0)
			r = described_add(&session->described, &allocator, allocators[i].domain);
		free(reason);
	}
	return r;
}

int session_new(struct link *link, const struct wire_attach *request, struct target *target,
		struct session **ret_session)
{
	struct session *session = calloc(1, sizeof(*session));
	int r;

	if (!session)
		return -ENOMEM;
	session->link = link;
	session->refuge_fd = -1;
	session->target = target;
	session->frames_limit = request->frames_limit;
	session->limits.max_blocks = request->max_blocks;
	session->stack_nodes_max = request->max_stack_nodes && request->max_stack_nodes < UINT32_MAX ?
				   (uint32_t)request->max_stack_nodes : SESSION_STACK_NODES_DEFAULT;
	session->waits_for_exec = request->from_exec;
	session->follows = request->follow_forks;
	session->wants_ring = request->engine != ENGINE_INT3 || request->release_or_fail || request->sample_bytes > 0;
	session->ring_size = session->wants_ring ? session_ring_size(target->pid) : 0;
	session->ring_wait_ms = request->ring_wait_ms ? request->ring_wait_ms : RING_WAIT_MS_DEFAULT;
	session->ring_readers = request->ring_readers;
	session->sample_bytes = request->sample_bytes;
	session->exit_status = -1;
	session->attached_realtime_ns = clock_realtime_ns();
	session->described.operators = request->domains & 1u << DOMAIN_NEW;
	session->described.mappings = request->domains & 1u << DOMAIN_MMAP;
	r = take_allocators(session, request->allocators);
	release_take_wish(session, request);
	session->may_release = session->alone;
	if (r == 0)
		r = new_tables(session, false);
	if (r < 0) {
		described_fini(&session->described);
		free(session);
		return r;
	}
	*ret_session = session;
	return 0;
}

void session_free(struct session *session)
{
	if (!session)
		return;
	fd_close(&session->refuge_fd);
	free_tables(session);
	guard_forget(session);
	target_free(session->target);
	described_fini(&session->described);
	free(session);
}

static void tell_engine(void *context, raddr address)
{
	engine_block_known(context, address);
}

void session_tell_blocks(struct session *session)
{
	heap_each_address(session->heap, tell_engine, session->engine);
}

/* A program that is executed later than the attach, and that samples cannot be had of, is counted whole. */
static int begin_sampling(struct session *session)
{
	bool is_sampled = heap_sampling(session->heap) > 0;

	if (session->sample_bytes == 0)
		return 0;
	if (!engine_has_ring(session->engine) && !is_sampled && (session->heap_from_start || session->waits_for_exec))
		return 0;
	if (!engine_has_ring(session->engine) || (!is_sampled && heap_counters(session->heap).allocations > 0))
		return -EPROTONOSUPPORT;
	session_start_sampling(session);
	/* After a while without us, from before that. */
	session_tell_blocks(session);
	return 0;
}

/* At an attach it was looked for while nobody was held. */
static int find_loader_hook(struct session *session, struct loader_hook *ret)
{
	if (!session->hook_is_found)
		return loader_find_hook(session->target, ret);
	session->hook_is_found = false;
	*ret = session->hook_found;
	return ret->address != 0;
}

/* Where that cannot be, objects are looked for once a second. */
static int watch_loader(struct session *session)
{
	struct loader_hook hook;
	int r = find_loader_hook(session, &hook);

	if (r <= 0 || !engine_has_ring(session->engine))
		return r;
	r = engine_watch_loader(session->engine, &hook);
	if (r == 0 || r == -ESRCH || r == -ENOMEM)
		return r;
	session->loader_unwatched = true;
	if (session->ptrace == PTRACE_AUTO)
		return 0;
	session_fail(session->link, 0, session->target->pid, FAILURE_UNSUPPORTED, 0,
		     "objects that it loads are looked for once a second, since no jump can stand where its loader tells of them: %s",
		     r == -ENOTSUP ? "there is no room" : r == -EBUSY ? "something else stands there" : strerror(-r));
	return 0;
}

static int plant_loader_hook(struct session *session)
{
	struct target *target = session->target;
	struct loader_hook hook;
	const char *reason;
	int r = find_loader_hook(session, &hook);

	if (r <= 0)
		return r;
	r = loader_prepare_hook(target, &hook, &session->loader_hook, &reason);
	return r == 0 ? bp_plant(target, session->loader_hook) : r;
}

static int prepare(struct session *session)
{
	struct target *target = session->target;
	int r;

	session->tasks_at_attach = (uint32_t)target->tasks.count;
	r = resident_prepare(target);
	if (r == 0)
		r = resident_install_handler(target);
	for (size_t i = 0; r == 0 && i < target->tasks.count; i++) {
		struct task *task = target->tasks.items[i];

		if (task->stopped && !stop_is_end(task->stop.kind)) {
			r = task_unmask(task);
			if (r == -ESRCH)
				r = 0;
		}
	}
	return r;
}

void session_expect_loader(struct session *session)
{
	if (session->alone && session->hook_is_found && session->hook_found.address != 0)
		engine_expect_loader(session->engine, session->hook_found.address);
}

int session_plant_engine(struct session *session)
{
	struct target *target = session->target;
	int r;

	session_expect_loader(session);
	r = engine_install(session->engine);
	session_tell_refusal(session);
	/* Where there is no ring to be alone that is the reason for a refusal. */
	if (r >= 0 && session->alone && !engine_has_ring(session->engine))
		return r;
	if (r >= 0)
		r = begin_sampling(session);
	if (r >= 0 && session->alone)
		r = watch_loader(session);
	if (r >= 0 && session->alone)
		return guard_watch_execs(session);
	if (r >= 0)
		r = guard_plant(session);
	if (r >= 0)
		r = plant_loader_hook(session);
	if (r != -EBUSY)
		return r;
	/* Another tool's breakpoint.  What is there is traced, what will be loaded is not. */
	session->loader_hook = NULL;
	session->modules_failed = true;
	session_fail(session->link, 0, target->pid, FAILURE_UNSUPPORTED, 0,
		     "another tool's breakpoint stands where the loader tells of new objects: those that are loaded "
		     "from now on are not seen");
	return 0;
}

/* Of a program that was executed: what is in it has no jumps yet, and may be called when its loader has loaded the rest. */
static int plant_early(struct session *session)
{
	int r = engine_may_begin(session->engine) ? 0 : plant_loader_hook(session);

	if (session->loader_hook || (r < 0 && r != -EBUSY))
		return r;
	session->release_due = false;
	if (engine_may_begin(session->engine))
		return session_plant_engine(session);
	/* There is none (a static program), or another tool's breakpoint stands there. */
	session->alone = false;
	session->hold = HOLD_LOADER;
	r = session_replace_engine(session);
	return r < 0 ? r : session_plant_engine(session);
}

/* Everything that changes the target, with its threads held.  Whatever fails half-way is undone by
 * session_detach. */
int session_plant(struct session *session)
{
	int r = prepare(session);

	if (r < 0)
		return r;
	return session->release_due ? plant_early(session) : session_plant_engine(session);
}

bool session_room_is_due(void *context)
{
	const struct session *session = context;

	return session->engine && !session->maps_change && engine_is_almost_full(session->engine) && clock_passed(session->next_room_ns);
}

void session_make_room(void *context)
{
	struct session *session = context;

	engine_make_room(session->engine);
	session->next_room_ns = clock_monotonic_ns() + ROOM_PAUSE_NS;
}

static void on_let_go(void *context, struct task *task)
{
	struct session *session = context;

	engine_task_gone(session->engine, task);
}

/* Everything that was known of the old program. */
void session_forget_program(struct session *session, struct task *task)
{
	struct target *target = session->target;
	const char *text;

	engine_read_last(session->engine);
	engine_ring_end(session->engine);
	if (!session->waits_for_exec)
		snapshot_write_now(session, SNAPSHOT_EXEC);
	for (size_t i = target->tasks.count; i-- > 0;) {
		struct task *other = target->tasks.items[i];

		if (other == task || other->guest)
			continue;
		engine_task_gone(session->engine, other);
		task_remove(other);
	}
	if (task && !target_leave_old_memory(target, task, on_let_go, session, &text))
		session_fail(session->link, 0, target->pid, FAILURE_INTERNAL, 0,
			     "of the memory that it had, and others still have: %s", text);
	if (task)
		engine_task_gone(session->engine, task);
	session->loader_unwatched = session->execs_unwatched = false;
	if (session->may_release)
		session->hold = release_known_hold(session);
	session->alone = session->release_due = session->hold == HOLD_NOT;
	session->exec_due = session->exec_seen = session->rights_due = session->watch_due = false;
	session->exec_deadline_ns = 0;
	free_tables(session);
	bp_drop_all(target);
	resident_forget(target);
	target_forget_modules(target);
	guard_forget(session);
	for (size_t i = 0; i < target->modules.modules.count; i++)
		target->modules.modules.items[i].left = true;
	session->loader_hook = NULL;
	session->hook_is_found = false;
	session->waits_for_exec = false;
	session->probe_gaps = session->orphans_seen = 0;
	session->checks_leaks = session->uprobes_told = session->resumed = false;
	session->unwatched = session->gap_told = false;
	target->was_ours = false;
	if (!task)
		return;
	task->masked = false;
	task->rewind_count = 0;
}

/* -ECANCELED: it is to be let go and will be what it should be. */
static int give_back_rights(struct session *session)
{
	int r = guard_give_back_rights(session->target->pid);

	if (r < 0)
		session_fail(session->link, 0, session->target->pid, FAILURE_INTERNAL, 0,
			     "it executes a set-id program, or one with capabilities, without these rights, since it is "
			     "traced, and could not be made to execute it once more");
	return r > 0 ? -ECANCELED : 0;
}

int session_begin_tables(struct session *session, bool from_start)
{
	int r = new_tables(session, from_start);

	return r == 0 ? target_reopen_memory(session->target) : r;
}

static int begin_program(struct session *session)
{
	struct target *target = session->target;
	bool changed;
	int r = session_begin_tables(session, true);

	if (r == 0)
		r = give_back_rights(session);
	if (r == 0 && session_is_foreign(target->memory_tid))
		r = -ENOTSUP;
	if (r == 0)
		r = target_scan_modules(target, &changed);
	if (r == 0)
		r = session_add_modules(session);
	if (r < 0)
		return r;
	session_name(session);
	r = session_plant(session);
	session_send_program(session, WIRE_EXECED, 0);
	return r;
}

static const char *why_not(int error)
{
	switch (error) {
	case -ECANCELED:
		return "it has a set-id file or capabilities, which it would not have while it is traced; it executes it once "
		       "more by itself";
	case -ENOTSUP:
		return "it is a 32-bit program, or one for another CPU";
	case -EACCES:
	case -EPERM:
		return "its user may not read the program's file, and so the kernel lets nobody of theirs look into it";
	case -EKEYREJECTED:
		return "a seccomp filter watches its system calls and might kill it for one of ours; root can lift that";
	case -ENOSPC:
		return "no room beside its code for the few hundred bytes that keep it safe (a static program?); link it "
		       "with a shared libc";
	default:
		return strerror(-error);
	}
}

void session_exec(struct session *session, struct task *task)
{
	bool waited = session->waits_for_exec;
	int r;

	session_forget_program(session, task);
	r = begin_program(session);
	if (r >= 0 && waited)
		session_drop_privileges(session);
	if (r >= 0 || r == -ESRCH)
		return;
	session->refused = true;
	session_say_farewell(session, FAILURE_INTERNAL, "the program that it executes cannot be traced: %s", why_not(r));
}
