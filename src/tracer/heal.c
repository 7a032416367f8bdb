#include "tracer/heal.h"

#include "tracer/explain.h"
#include "tracer/wire.h"

#include "target/attach.h"
#include "target/park.h"
#include "target/process.h"
#include "target/resident.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FIRST_WORD_MS 1000
#define NAME_MAX_BYTES 64
#define PARKED_MAX 4096          /* processes; further ones are waited for one after the other */
#define PARKED_PAUSE_NS 5000000
#define SERVICE_HEALS "aw-heals"      /* /proc/PID/comm of a service that does */
#define VFORK_SECONDS 10              /* for threads that nothing breaks off */
#define DYING_MS 1000                 /* a tracer lets one task after the other go when it dies */
#define DYING_PAUSE_NS 2000000
#define OTHERS_MS 1000                /* for another healer, which may be killed before it is done */
#define OTHERS_PAUSE_NS 10000000

static enum heal_result say(char text[HEAL_TEXT_MAX], enum heal_result result, const char *what,
			    const char *why)
{
	snprintf(text, HEAL_TEXT_MAX, "%s%s%s", what, why ? ": " : "", why ? why : "");
	return result;
}

static enum heal_result say_refused(pid_t pid, int error, char text[HEAL_TEXT_MAX])
{
	char why[HEAL_TEXT_MAX - 64];
	pid_t tracer;

	explain_attach(pid, error, why, sizeof(why), &tracer);
	return say(text, HEAL_FAILED, "whether a tracer has left anything there cannot be seen", why);
}

static bool is_gone(pid_t pid)
{
	return process_thread_is_dead(pid, process_living_thread(pid));
}

/* Of one that has ended there is nothing to be seen; one that has just executed a program may be tried again. */
static enum heal_result say_unseen(pid_t pid, int error, char text[HEAL_TEXT_MAX])
{
	if (is_gone(pid))
		return HEAL_NOTHING;
	return say(text, HEAL_FAILED, "whether a tracer has left anything there cannot be seen", strerror(-error));
}

/* While all threads wait in vfork, or for a disk, none can make the system calls that are due. */
static bool undo_when_possible(struct target *target, const char **ret_left)
{
	uint64_t deadline_ns = clock_monotonic_ns() + VFORK_SECONDS * NSEC_PER_SEC;
	bool clean = target_undo(target, ret_left);

	while (!clean && target->undo_due && !clock_passed(deadline_ns)) {
		if (target_wait_for_any(target) == 0)
			clean = target_undo(target, ret_left);
	}
	return clean;
}

/* With all tasks held.  What was found before may have been undone meanwhile: by another healer (the daemon's own beside
 * one that was called by hand), or by an exec.  And what stands there now may be another tracer's, which has attached since and let it go. */
static enum heal_result undo(struct target *target, char text[HEAL_TEXT_MAX])
{
	raddr area = resident_find(target);
	const char *left;
	int r;

	if (area == 0 || resident_is_parked(target, area))
		return HEAL_NOTHING;
	r = resident_adopt(target, area);
	if (r < 0)
		return say(text, HEAL_FAILED,
			   "what a tracer that died has left there cannot be taken out, and does no harm",
			   r == -ENODATA ? "a file of its objects cannot be read"
			   : r == -EPROTO ? "it is of another version of allocwatch" : strerror(-r));
	if (!undo_when_possible(target, &left))
		return say(text, HEAL_FAILED, "healed in part", left);
	return say(text, HEAL_DONE, "what a tracer that died has left there was taken out", NULL);
}

/* What is done about a time in the header of a process: until then it is on its way from one tracer to another, or traced without
 * ptrace.  Its tracer, when it lives, renews that time, or takes it away. */
struct patience {
	bool comes_back;               /* it is noted, and not waited for: that is done for many processes at once, later */
	uint64_t seen_ns;              /* the time, as it was noted before; 0: it was not */
};

/* One that is on its way from one tracer to another is taken within milliseconds; when its tracer is dead, it goes on
 * by itself once its time is over; somebody who renews that time traces the process without ptrace. */
static bool is_taken(struct target *target, raddr area, struct patience *patience)
{
	const struct timespec pause = { 0, PARKED_PAUSE_NS };
	uint64_t deadline_ns = clock_monotonic_ns() + (PARK_SECONDS + 1) * NSEC_PER_SEC;
	uint64_t now_ns = resident_parked_until(target, area);

	if (patience->seen_ns == 0)
		patience->seen_ns = now_ns;
	while (!patience->comes_back && process_tracer(target->memory_tid) == 0 && now_ns != 0 && now_ns == patience->seen_ns &&
	       !clock_passed(deadline_ns)) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		now_ns = resident_parked_until(target, area);
	}
	return process_tracer(target->memory_tid) != 0 || now_ns != 0;
}

/* One of those that have the memory is in the hands of another tracer (that of a process in vfork, say, which can let it
 * go only later): that one takes out what is left, or has done so by now. */
static bool is_anothers(struct target *target)
{
	pid_t tracer = target->stranger != 0 ? process_tracer(target->stranger) : 0;

	return (tracer != 0 && tracer != getpid()) || resident_find(target) == 0;
}

/* One that is still in the hands of the tracer that died is free in a moment; those that are seized already stay so.  Whose tracer
 * takes out all that was left is not seized any more: it may have been told to let it go. */
static int seize(struct target *target, struct sharers *sharers)
{
	const struct timespec pause = { 0, DYING_PAUSE_NS };
	uint64_t deadline_ns = clock_monotonic_ns() + DYING_MS * NSEC_PER_MSEC;
	int r = target_seize(target, sharers);

	while (r == -EPERM && target->stranger != 0 && !clock_passed(deadline_ns) && resident_find(target) != 0) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		r = target_seize(target, sharers);
	}
	return r;
}

static enum heal_result heal_target(struct target *target, struct patience *patience, char text[HEAL_TEXT_MAX])
{
	struct sharers sharers = { .last_pid = 0 };
	enum heal_result result;
	bool changed;
	raddr area;
	int r;

	r = target_scan_modules(target, &changed);
	if (r < 0)
		return say_unseen(target->pid, r, text);
	area = resident_find(target);
	/* Its tracer may have let it go while that was waited for. */
	if (area == 0 || is_taken(target, area, patience) || resident_find(target) == 0)
		return HEAL_NOTHING;
	r = sharers_look(target, &sharers);
	if (r == 0)
		r = seize(target, &sharers);
	if (r == 0)
		r = target_hold_all(target, &sharers);
	sharers_fini(&sharers);
	if (r < 0) {
		result = say(text, is_gone(target->pid) || is_anothers(target) ? HEAL_NOTHING : HEAL_FAILED,
			     "cannot be healed", strerror(-r));
		target_stop_all(target);       /* those that are seized, to be let go */
	} else {
		result = undo(target, text);
	}
	target_let_go(target, NULL, NULL);
	return result;
}

static void drop_task(void *context, struct task *task)
{
	(void)context;
	task_remove(task);
}

static enum heal_result heal_with_patience(pid_t pid, uint64_t start_time, struct patience *patience, char text[HEAL_TEXT_MAX])
{
	enum heal_result result = HEAL_NOTHING;
	struct target *target;
	int r;

	text[0] = '\0';
	if (process_tracer(pid) != 0)
		return HEAL_NOTHING;
	r = target_new(pid, &target);
	if (r == -EACCES || r == -EPERM)
		return say_refused(pid, r, text);
	if (r < 0)
		return say_unseen(pid, r, text);
	target->task_gone = drop_task;
	if (start_time == 0 || start_time == target->start_time)
		result = heal_target(target, patience, text);
	target_free(target);
	return result;
}

enum heal_result heal_process(pid_t pid, uint64_t start_time, char text[HEAL_TEXT_MAX])
{
	struct patience waits = { .comes_back = false };

	return heal_with_patience(pid, start_time, &waits, text);
}

/* --- the command line's form --- */

static bool same_program(pid_t pid, const struct stat *program)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat(path, &st) == 0 && st.st_dev == program->st_dev && st.st_ino == program->st_ino;
}

/* others_ms: for another healer, that it be done. */
static bool heal_and_tell(pid_t pid, struct patience *patience, uint64_t others_ms)
{
	const struct timespec pause = { 0, OTHERS_PAUSE_NS };
	uint64_t deadline_ns = clock_monotonic_ns() + others_ms * NSEC_PER_MSEC;
	char text[HEAL_TEXT_MAX];
	enum heal_result result = heal_with_patience(pid, 0, patience, text);

	while (result == HEAL_NOTHING && !clock_passed(deadline_ns) && resident_is_left(pid)) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		result = heal_process(pid, 0, text);
	}
	if (result != HEAL_NOTHING)
		fprintf(stderr, "allocwatch: process %d: %s\n", pid, text);
	return result != HEAL_FAILED;
}

/* Of those that run the same program, when one is given.  Whoever may have a tracer without ptrace is come back to, so that it is waited
 * once for all of them until its time is over, or renewed. */
static bool heal_all(const struct stat *program)
{
	struct {
		pid_t pid;
		struct patience patience;
	} parked[PARKED_MAX];
	DIR *proc = opendir("/proc");
	int r = proc ? 0 : -errno;
	size_t count = 0;
	bool good = true;
	struct patience patience;
	pid_t pid;

	while (proc && (r = proc_next(proc, &pid)) > 0) {
		if ((program && !same_program(pid, program)) || !resident_is_left(pid))
			continue;
		patience = (struct patience){ .comes_back = count < PARKED_MAX };
		good &= heal_and_tell(pid, &patience, 0);
		if (patience.comes_back && patience.seen_ns != 0) {
			parked[count].pid = pid;
			parked[count++].patience.seen_ns = patience.seen_ns;
		}
	}
	for (size_t i = 0; i < count; i++) {
		parked[i].patience.comes_back = false;
		good &= heal_and_tell(parked[i].pid, &parked[i].patience, 0);
	}
	if (r < 0)
		fprintf(stderr, "allocwatch: /proc cannot be read%s: %s\n", proc ? " to its end" : "", strerror(-r));
	if (proc)
		closedir(proc);
	return good && r == 0;
}

static int heal_with_copies(pid_t pid)
{
	struct patience waits = { .comes_back = false };
	struct stat program;
	char path[64];
	bool good, known;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	/* One that has ended meanwhile needs nothing; copies of it cannot be told from others then. */
	known = stat(path, &program) == 0;
	if (!known && (errno == ENOENT || errno == ESRCH))
		return EXIT_SUCCESS;
	good = heal_and_tell(pid, &waits, OTHERS_MS);
	return known && heal_all(&program) && good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int heal_main(const char *argument)
{
	char *end;
	pid_t pid;

	if (!argument)
		return heal_all(NULL) ? EXIT_SUCCESS : EXIT_FAILURE;
	pid = (pid_t)strtol(argument, &end, 10);
	if (pid <= 0 || *end) {
		fprintf(stderr, "allocwatch: '%s' is no process number\n", argument);
		return 2;
	}
	return heal_with_copies(pid);
}

/* What is done for the first time takes longer: functions are bound, pages come in, memory is had from the kernel. */
static void rehearse(void)
{
	struct target *self;
	bool changed;

	if (target_new(getpid(), &self) < 0)
		return;
	if (target_scan_modules(self, &changed) == 0)
		resident_find(self);
	target_free(self);
}

/* For ps(1). */
static void show_as_healer(char *option)
{
	const char heals[] = "--heal";

	memset(option, 0, strlen(option));
	memcpy(option, heals, sizeof(heals) - 1);
}

/* 0, also at the daemon's end; or the length of what has come. */
static ssize_t wait_for_word(int sock, struct wire_head *ret)
{
	ssize_t n;

	do
		n = recv(sock, ret, sizeof(*ret), 0);
	while (n < 0 && errno == EINTR);
	return n;
}

static bool is_word(const struct wire_head *head, ssize_t n, uint32_t type)
{
	return n == (ssize_t)sizeof(*head) && wire_check(head, sizeof(*head), 0) == 0 && head->type == type;
}

static int do_as_told(const struct wire_head *request)
{
	return request->pid > 0 ? heal_with_copies(request->pid) : heal_main(NULL);
}

int heal_stand_by(int sock, char *option)
{
	struct wire_head request;
	ssize_t n;

	rehearse();
	n = wait_for_word(sock, &request);
	if (n == 0)
		return EXIT_SUCCESS;
	if (!is_word(&request, n, WIRE_HEAL))
		return 2;
	show_as_healer(option);
	return do_as_told(&request);
}

/* --- as a service --- */

/* The daemon speaks first, as soon as it has connected; of one that does not it is heard in the ordinary way. */
bool heal_is_to_stand_by(int sock)
{
	struct pollfd word = { .fd = sock, .events = POLLIN };
	struct wire_head head;
	ssize_t n;

	if (poll(&word, 1, FIRST_WORD_MS) <= 0)
		return false;
	n = recv(sock, &head, sizeof(head), MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
	return is_word(&head, n, WIRE_STAND_BY);
}

static void answer(int sock, const struct wire_head *request, bool good)
{
	struct wire_head done = { WIRE_DONE, request->serial, request->pid, sizeof(done) };
	struct wire_failed failed = { .head = { WIRE_FAILED, request->serial, request->pid, sizeof(failed) },
				      .failure = FAILURE_INTERNAL, .text = "not all could be taken out" };

	if (good)
		fd_send_message(sock, &done, sizeof(done), -1);
	else
		fd_send_message(sock, &failed, sizeof(failed), -1);
}

int heal_serve(int sock)
{
	struct wire_heartbeat ready = { .head = { WIRE_HEARTBEAT, 0, 0, sizeof(ready) } };
	struct wire_head request;
	ssize_t n;

	wait_for_word(sock, &request);       /* the one that was looked at */
	prctl(PR_SET_NAME, HEAL_STANDS_BY);
	rehearse();
	if (fd_send_message(sock, &ready, sizeof(ready), -1) < 0)
		return EXIT_SUCCESS;
	n = wait_for_word(sock, &request);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return EXIT_SUCCESS;
	if (!is_word(&request, n, WIRE_HEAL))
		return 2;
	prctl(PR_SET_NAME, SERVICE_HEALS);
	answer(sock, &request, do_as_told(&request) == EXIT_SUCCESS);
	return EXIT_SUCCESS;
}

/* --- somebody else's --- */

bool heal_is_done_by(pid_t pid)
{
	static const char heals[] = "allocwatch-tracer --heal";
	char command[64], path[64], *name;
	bool service;

	process_command(pid, command, sizeof(command));
	if (strncmp(command, heals, sizeof(heals) - 1) == 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (file_read_text(path, NAME_MAX_BYTES, &name, NULL) < 0)
		return false;
	service = strcmp(name, SERVICE_HEALS "\n") == 0;
	free(name);
	return service;
}
