/* The beginning of a session; its end is in detach.c. */
#define _GNU_SOURCE
#include "tracer/release.h"
#include "tracer/session.h"

#include "tracer/explain.h"
#include "tracer/follow.h"
#include "tracer/foreign.h"
#include "tracer/others.h"
#include "tracer/privileges.h"
#include "tracer/snapshot.h"

#include "target/access.h"
#include "target/elf_file.h"
#include "target/loader.h"
#include "target/process.h"
#include "target/ptrace.h"

#include "base/fd.h"
#include "base/proc.h"
#include "base/user.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDS_WHILE_IDLE 256
#define EXEC_TRIES 3               /* to open the memory of a process that execs meanwhile */

void session_name(struct session *session)
{
	process_exe(session->target->memory_tid, session->exe, sizeof(session->exe));
	process_command(session->target->memory_tid, session->command, sizeof(session->command));
}

bool session_is_foreign(pid_t tid)
{
	struct elf_file file;
	bool foreign = false;
	int fd = mapped_file_open_head(tid);

	if (fd >= 0 && elf_file_read(fd, &file) == 0) {
		foreign = !file.is_64 || file.machine != EM_X86_64;
		elf_file_fini(&file);
	}
	fd_close(&fd);
	return foreign;
}

static void fail_attach(struct link *link, const struct wire_attach *request, int error)
{
	char text[WIRE_TEXT_MAX];
	pid_t tracer;
	enum wire_failure failure = explain_attach(request->head.pid, error, text, sizeof(text), &tracer);

	session_fail(link, request->head.serial, request->head.pid, failure, tracer, "%s", text);
}

static void fail_for_stranger(const struct session *session, const struct wire_attach *request)
{
	char text[WIRE_TEXT_MAX];
	pid_t tracer;

	explain_stranger(request->head.pid, session->target->stranger, text, sizeof(text), &tracer);
	session_fail(session->link, request->head.serial, request->head.pid, FAILURE_NOT_PERMITTED, tracer, "%s", text);
}

/* Whatever the attach failed with, when its process is gone that is why. */
static void fail_planting(const struct session *session, const struct wire_attach *request, int error)
{
	char text[PROC_END_MAX];

	if (session->ended)
		session_fail(session->link, request->head.serial, request->head.pid, FAILURE_NO_SUCH_PROCESS, 0,
			     "process %d %s in the middle of the attach", request->head.pid,
			     proc_end_text(text, session->exit_status));
	else if (error == -EPERM && session->target->stranger != 0 && session->target->stranger != request->head.pid)
		fail_for_stranger(session, request);
	else if (error == -EALREADY)
		session_fail(session->link, request->head.serial, request->head.pid, FAILURE_UNSUPPORTED, 0,
			     "process %d is traced by another daemon, without ptrace; detach it there first", request->head.pid);
	else if (error == -EPROTONOSUPPORT)
		session_fail(session->link, request->head.serial, request->head.pid, FAILURE_UNSUPPORTED, 0,
			     "process %d: samples come with the ring engine alone, which it cannot have: %s; attach with "
			     "--sample-bytes 0", request->head.pid,
			     session_engine_reason(session) ? session_engine_reason(session) : "it was counted whole before");
	else
		fail_attach(session->link, request, error);
}

/* Refusals that are known before anything is touched. */
static int check_target(struct link *link, const struct wire_attach *request, const struct target *target)
{
	pid_t pid = request->head.pid;
	char text[WIRE_TEXT_MAX];

	if (request->start_time != 0 && request->start_time != target->start_time) {
		session_fail(link, request->head.serial, pid, FAILURE_NO_SUCH_PROCESS, 0,
			     "process %d has ended, and its number now belongs to another one", pid);
		return -ESRCH;
	}
	if (session_is_foreign(target->memory_tid)) {
		session_fail(link, request->head.serial, pid, FAILURE_UNSUPPORTED, 0,
			     "process %d runs a 32-bit program, or one for another CPU: allocwatch traces only 64-bit x86-64 "
			     "programs", pid);
		return -ENOTSUP;
	}
	/* One thread without is enough: our calls are made in that. */
	if (target->all_filtered && !access_may_suspend_seccomp()) {
		explain_filter(pid, text, sizeof(text));
		session_fail(link, request->head.serial, pid, FAILURE_NOT_PERMITTED, 0, "%s", text);
		return -EPERM;
	}
	return 0;
}

/* What is found out before anything is touched; of a program that is yet to come, later and in the log. */
static int check_allocators(struct session *session, const struct wire_attach *request)
{
	const struct target *target = session->target;
	const char *reason;
	uint32_t module;

	if (request->from_exec)
		return 0;
	reason = foreign_refusal(session);
	if (reason) {
		session_fail(session->link, request->head.serial, target->pid, FAILURE_UNSUPPORTED, 0,
			     "cannot attach to process %d: %s", target->pid, reason);
		return -ENOTSUP;
	}
	if (engine_unwatchable(session->engine, &module, &reason)) {
		session_fail(session->link, request->head.serial, target->pid, FAILURE_NO_ALLOCATOR, 0,
			     "malloc in %s of process %d cannot be watched: %s; this version knows glibc's, musl's and jemalloc's "
			     "and those that end by plain returns", target->modules.modules.items[module].path,
			     target->pid, reason);
		return -ENOTSUP;
	}
	if (engine_planned(session->engine) > 0)
		return 0;
	session_fail(session->link, request->head.serial, target->pid, FAILURE_NO_ALLOCATOR, 0,
		     "no allocator found in process %d: none of its objects defines malloc under a name that "
		     "allocwatch knows (a stripped static program?)", target->pid);
	return -ENOENT;
}

/* Somebody whom this user may not trace has the same memory: what is seen of one is seen of both. */
static int find_stranger(struct target *target, const struct sharers *sharers)
{
	target->stranger = sharers_prove(target, sharers);
	return target->stranger != 0 ? -EPERM : 0;
}

static int hold_and_plant(struct session *session, struct sharers *sharers)
{
	struct target *target = session->target;
	bool changed;
	int r;

	r = target_seize(target, sharers);
	if (r < 0 || session->waits_for_exec)
		return r;
	/* Another one may have attached to it, and let it go of ptrace, since that was looked at; from now on none can. */
	if (others_trace(target))
		return -EALREADY;
	r = target_hold_all(target, sharers);
	if (r >= 0 && !target_holds_any(target)) {
		r = target_wait_for_any(target);
		if (r == 0)
			r = sharers_look(target, sharers);
		if (r == 0)
			r = target_seize(target, sharers);
		if (r == 0)
			r = target_hold_all(target, sharers);
	}
	if (r < 0)
		return r;
	/* What is traced is what it executes just now, as with every exec: see loop_resume_held(). */
	if (target_executed(target)) {
		session->waits_for_exec = true;
		return 0;
	}
	/* What was loaded between the look and the stop is rare, and little. */
	r = target_scan_modules(target, &changed);
	if (r == 0 && changed)
		session->hook_is_found = false;
	if (r == 0)
		r = session_add_modules(session);
	if (r == 0)
		r = session_plant(session);
	if (r >= 0)
		r = find_stranger(target, sharers);
	return r;
}

/* Files are read for that: not while threads are held. */
static int find_hook(struct session *session)
{
	int r;

	session->hook_found = (struct loader_hook){ .address = 0 };
	r = loader_find_hook(session->target, &session->hook_found);
	session->hook_is_found = r >= 0;
	return r < 0 ? r : 0;
}

/* What is planned is asked of them while the others run on. */
static void on_some_held(void *context)
{
	struct session *session = context;
	struct target *target = session->target;
	uint64_t mask;

	for (size_t i = 0; i < target->tasks.count; i++) {
		if (target->tasks.items[i]->stopped && !stop_is_end(target->tasks.items[i]->stop.kind))
			task_getsigmask(target->tasks.items[i], &mask);
	}
	session_expect_loader(session);
	engine_look_ahead(session->engine);
}

int session_seize(struct session *session)
{
	struct sharers sharers = { .last_pid = 0 };
	int r = sharers_look(session->target, &sharers);

	if (r == 0 && !session->waits_for_exec)
		r = find_hook(session);
	session->target->some_held = on_some_held;
	if (r == 0)
		r = hold_and_plant(session, &sharers);
	session->target->some_held = NULL;
	sharers_fini(&sharers);
	return r;
}

/* A process that execs just now has other memory than the one that was opened. */
static int first_look(struct session *session)
{
	struct target *target = session->target;
	bool changed;
	int r = target_scan_modules(target, &changed);

	for (unsigned try = 0; r == -ESRCH && try < EXEC_TRIES; try++) {
		r = target_reopen_memory(target);
		if (r == 0)
			r = target_scan_modules(target, &changed);
	}
	return r == 0 ? session_add_modules(session) : r;
}

/* So that nobody waits for room while a child is looked after. */
static void on_idle(void *context)
{
	struct session *session = context;

	if (session->engine && !session->maps_change)
		engine_read_ring(session->engine, RECORDS_WHILE_IDLE, NULL);
}

/* For room in the ring, or for a record before what it has recorded to be settled. */
static bool on_is_awaited(void *context)
{
	const struct session *session = context;

	return session->settles || (session->engine && engine_is_almost_full(session->engine));
}

static bool on_is_in_handler(void *context, struct task *task, raddr at)
{
	struct session *session = context;

	return !session->engine || engine_is_in_handler(session->engine, task, at);
}

static void on_task_gone(void *context, struct task *task)
{
	struct session *session = context;
	bool leader = task->tid == session->target->pid && task->stop.sig != STOP_UNKNOWN_STATUS;

	/* What kills a process kills all its threads by the same signal. */
	if (leader || (!task->guest && session->exit_status == -1 && task->stop.kind == STOP_KILLED))
		session->exit_status = task->stop.kind == STOP_EXITED ? (task->stop.sig & 0xff) << 8 : task->stop.sig;
	engine_task_gone(session->engine, task);
	heap_thread_gone(session->heap, task->tid);
	task_remove(task);
}

void session_send_program(struct session *session, enum wire_type type, uint32_t serial)
{
	const char *warning = foreign_warning(session), *hold = session_hold_text(session);
	char missed[sizeof(((struct wire_attached *)NULL)->warning)], places[sizeof(missed) / 2];
	struct wire_attached answer = {
		.head = { type, serial, session->target->pid, sizeof(answer) },
		.start_time = session->target->start_time,
		.attached_realtime_ns = session->attached_realtime_ns,
		.tasks = session_task_count(session),
		.probes = engine_probe_count(session->engine),
		.released = !hold,
	};
	bool hold_is_known = hold_was_asked_for(session);

	if (!warning)
		warning = engine_refusal(session->engine);
	if (!warning && session_engine_reason(session)) {
		snprintf(answer.warning, sizeof(answer.warning), "it is traced by int3, not by the ring engine: %s",
			 session_engine_reason(session));
		warning = answer.warning;
		hold_is_known |= session->hold == HOLD_ENGINE;
	}
	if (!warning && engine_unwatched(session->engine) > 0) {
		snprintf(missed, sizeof(missed), "answers are not exact: without ptrace %s",
			 engine_int3_beside(session->engine, places, sizeof(places)));
		warning = missed;
	}
	if (!warning)
		warning = session_missed(session, missed, sizeof(missed));
	if (!warning && described_missing(&session->described)) {
		snprintf(missed, sizeof(missed), "no object so far has the function %.100s of a described allocator; those that are "
			 "loaded later are looked through", described_missing(&session->described));
		warning = missed;
	}
	if (warning && warning != answer.warning)
		snprintf(answer.warning, sizeof(answer.warning), "%s", warning);
	if (hold && !hold_is_known)
		snprintf(answer.hold_reason, sizeof(answer.hold_reason), "%s", hold);
	memcpy(answer.exe, session->exe, sizeof(answer.exe));
	memcpy(answer.command, session->command, sizeof(answer.command));
	link_send(session->link, &answer, sizeof(answer), -1);
}

void session_drop_privileges(struct session *session)
{
	uid_t uid = 0;
	gid_t gid = 0;
	int r;

	process_ids(session->target->pid, &uid, &gid);
	/* To lift its filter once more, at the detach or in a child, takes the right to. */
	if (session->target->filtered)
		return;
	r = privileges_drop_to(uid, gid, session->may_release);
	if (r < 0)
		session_fail(session->link, 0, session->target->pid, FAILURE_INTERNAL, 0,
			     "the tracer could not become uid %u: %s; it goes on with its own rights", uid,
			     strerror(-r));
}

/* From here on the kernel itself judges, at the attach, at each exec and for each new process, by who asked. */
static int become_owner(struct link *link, const struct wire_attach *request)
{
	int r;

	if (!request->as_owner || geteuid() != 0)
		return 0;
	r = user_become(request->owner_uid, request->owner_gid, request->owner_groups,
			request->owner_group_count);
	if (r < 0)
		session_fail(link, request->head.serial, request->head.pid, FAILURE_INTERNAL, 0,
			     "cannot attach to process %d: the tracer could not become uid %u, for whom it would trace: %s",
			     request->head.pid, request->owner_uid, strerror(-r));
	return r;
}

static void tell_refusal(const struct session *session, const struct wire_attach *request, const char *reason)
{
	session_fail(session->link, request->head.serial, request->head.pid, FAILURE_UNSUPPORTED, 0,
		     "process %d cannot be traced without ptrace: %s; without --release it is traced with it", request->head.pid, reason);
}

/* undo: takes out what was planted, and lets it go. */
static void refuse_release(struct session *session, const struct wire_attach *request,
			   bool (*undo)(struct session *session, const char **ret_text))
{
	char reason[256];
	const char *text;

	/* Of an engine that is gone then. */
	snprintf(reason, sizeof(reason), "%s", hold_text(session, release_refusal(session)));
	undo(session, &text);
	tell_refusal(session, request, reason);
}

/* An attach that was to let it go, and cannot. */
static bool is_refused(const struct session *session)
{
	return session->release_or_fail && session->alone && !session->waits_for_exec && release_refusal(session) != HOLD_NOT;
}

static int seize(struct session *session)
{
	int r = session->waits_for_exec ? 0 : release_look_at_plan(session);

	if (r == 0)
		r = session_seize(session);
	return r < 0 || session->waits_for_exec || is_refused(session) ? r : release_decide(session);
}

int session_attach(struct link *link, const struct wire_attach *request, struct session **ret_session)
{
	struct session *session = NULL;
	struct target *target;
	uid_t uid = 0;
	gid_t gid = 0;
	bool root = geteuid() == 0;
	int r;

	r = become_owner(link, request);
	if (r < 0)
		return r;
	r = target_new(request->head.pid, &target);
	if (r < 0) {
		fail_attach(link, request, r);
		return r;
	}
	r = check_target(link, request, target);
	if (r < 0) {
		target_free(target);
		return r;
	}
	process_ids(target->pid, &uid, &gid);
	r = session_new(link, request, target, &session);
	if (r < 0) {
		target_free(target);
		fail_attach(link, request, r);
		return r;
	}
	target->task_gone = on_task_gone;
	target->idle = on_idle;
	target->is_awaited = on_is_awaited;
	target->is_in_handler = on_is_in_handler;
	/* One that systemd started for the daemon has nobody above it whom to name; its copies are below it. */
	session->daemon = getppid() > 1 ? getppid() : getpid();
	session->gives_up_rights = root && (geteuid() != 0 || (uid != 0 && !target->filtered));
	if (session->follows)
		target->copy_made = follow_copy;
	target->context = session;
	session_name(session);
	/* All parsing comes before the first stop. */
	r = first_look(session);
	/* What was seen of a process that just ends is not all. */
	if (r == 0 && process_thread_is_exiting(target->pid, target->memory_tid))
		r = -ESRCH;
	if (r == 0)
		others_heal(session);
	if (r < 0) {
		fail_attach(link, request, r);
		session_free(session);
		return r;
	}
	r = others_trace(target) ? -EALREADY : check_allocators(session, request);
	if (r == -EALREADY)
		fail_planting(session, request, r);
	if (r == 0) {
		const char *text;

		r = seize(session);
		if (r < 0) {
			session_detach(session, &text);
			fail_planting(session, request, r);
			if (session_left_something(session))
				r = -EUCLEAN;
		}
	}
	if (r < 0) {
		session_free(session);
		return r;
	}
	if (is_refused(session)) {
		refuse_release(session, request, session_detach);
		session_free(session);
		return -ENOTSUP;
	}
	/* The exec that is waited for may give it what its user may not look into: capabilities of a service's. */
	if (!request->from_exec)
		session_drop_privileges(session);
	*ret_session = session;
	return 0;
}

/* --- again, after it was let go for a while --- */

/* What may have happened meanwhile: an exec, objects that came and went, our old handler still there. */
static int look_again(struct session *session)
{
	struct target *target = session->target;
	bool changed;
	int r = target->tasks.count > 0 ? -EAGAIN : target_scan_modules(target, &changed);

	if (r < 0)
		return r;
	for (uint32_t id = 0; id < session->modules_known; id++) {
		if (!target->modules.modules.items[id].mapped)
			unwinder_remove_module(session->unwinder, id);
	}
	r = session_renew_engine(session);
	return r == 0 ? session_add_modules(session) : r;
}

static void fail_resume(struct session *session, const struct wire_attach *request, int error)
{
	pid_t pid = request->head.pid;
	uint64_t start_time;

	if (error == -EAGAIN)
		session_fail(session->link, request->head.serial, pid, FAILURE_INTERNAL, 0,
			     "process %d: a thread of it could not be let go yet; try again", pid);
	else if (error == -ESRCH && proc_start_time(pid, &start_time) == 0 &&
		 start_time == session->target->start_time)
		session_fail(session->link, request->head.serial, pid, FAILURE_UNSUPPORTED, 0,
			     "process %d has executed another program since it was detached from; 'allocwatch detach %d' "
			     "ends what was kept of the old one, then attach again", pid, pid);
	else
		fail_attach(session->link, request, error);
}

int session_resume(struct session *session, const struct wire_attach *request)
{
	struct target *target = session->target;
	const char *text;
	int r;

	process_filters(target->pid, &target->filtered, &target->all_filtered);
	r = check_target(session->link, request, target);
	if (r < 0)
		return r;
	/* What its tracer could not do from the beginning it cannot now. */
	if (request->release_or_fail && !session->may_release) {
		tell_refusal(session, request, "what is kept of it was traced with ptrace, and its tracer may not take it back by itself ('allocwatch "
			     "detach PID' without --keep ends that, and an attach begins anew)");
		return -ENOTSUP;
	}
	others_heal(session);
	if (session->may_release)
		release_take_wish(session, request);
	session->loader_unwatched = session->execs_unwatched = false;
	r = look_again(session);
	if (r < 0) {
		fail_resume(session, request, r);
		return r;
	}
	session->leaving = session->set_aside = false;
	if (session->follows)
		target->copy_made = follow_copy;
	r = session_seize(session);
	if (r >= 0 && is_refused(session)) {
		refuse_release(session, request, session_set_aside);
		return -ENOTSUP;
	}
	if (r >= 0)
		r = release_decide(session);
	if (r < 0) {
		session_set_aside(session, &text);
		if (session->ended || session->target->stranger != 0 || r == -EALREADY)
			fail_planting(session, request, r);
		else
			fail_resume(session, request, r);
		return r;
	}
	/* Nobody knows what it did meanwhile. */
	session->probe_gaps++;
	session->resumed = true;
	session_name(session);
	return 0;
}
