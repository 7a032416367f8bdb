/* Chaos: tracer, daemon, healer or all of them are killed, stopped or told to end at a random moment of a phase, while
 * the target is at work; and the target says itself, afterwards, whether anything went wrong.
 *
 * Each round has a daemon and a target of its own and is drawn from one number: LIVE_CHAOS=NUMBER plays that round
 * again, as it was drawn.  Moments remain a matter of the machine. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 24
#define ROUNDS_LONG 2000
#define FREE_MS 15000          /* a tracer that is stopped counts a second of it */
#define CLIENT_MS 60000
#define SIGNALS 40
#define BROKEN_MOST 50         /* in one of so many rounds */

/* How a round ends, worst last. */
enum outcome { LIVED, MISSED, BROKEN_OFF, UNSAFE, LEFTOVERS, CORRUPT, DEAD, OUTCOMES };

static const char *const outcome_names[OUTCOMES] = { "lived", "missed", "a wait broken off", "unsafe", "leftovers", "corrupt", "dead" };

static uint64_t drawn;         /* this round's source of numbers */

static uint64_t draw(uint64_t below)
{
	drawn ^= drawn >> 12;
	drawn ^= drawn << 25;
	drawn ^= drawn >> 27;
	return (drawn * 0x2545f4914f6cdd1dULL >> 16) % below;
}

static void end_round(enum outcome outcome, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

static const char *unsafe_reason;      /* what status said; NULL: it was safe */

static void end_round(enum outcome outcome, const char *format, ...)
{
	va_list args;

	if (outcome == DEAD && unsafe_reason) {
		printf("# crash_safe was false: %s\n", unsafe_reason);
		outcome = UNSAFE;
	}
	printf("# %s: ", outcome_names[outcome]);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(100 + (int)outcome);
}

/* --- targets --- */

struct kind {
	const char *name;
	const char *argv[6];
	const char *start;             /* commands that set it to work; after 'q' none is understood */
	bool answers;                  /* the last of them is answered, at some time */
	const char *end;               /* the last of these is answered */
	const char *zero[3];           /* what must be 0 in that answer */
	const char *equal[2];          /* two that must be the same */
	/* Who dies just when it has stopped a thread, and has not seen it stop yet, leaves EINTR in a wait that
	 * cannot begin again by itself. */
	bool waits;
	/* Its filter kills for a call that is made in it, should the tracer die while it is made: the kernel lifts
	 * it for a tracer that lives. */
	bool filtered;
	bool unstoppable;              /* a stop and its end break off waits by themselves, see signal(7) */
	bool signals;                  /* is sent numbered ones all the time */
	bool other_actions;            /* sets actions for signals itself, or executes */
};

static const struct kind kinds[] = {
	{ .name = "1 thread", .argv = { "tests/victims/hammer", "--threads", "1", "--ops", "100" }, .start = "r",
	  .end = "s" },
	{ .name = "4 threads", .argv = { "tests/victims/hammer", "--threads", "4", "--ops", "100" }, .start = "r",
	  .end = "s" },
	{ .name = "16 threads", .argv = { "tests/victims/hammer", "--threads", "16", "--ops", "100" }, .start = "r",
	  .end = "s" },
	{ .name = "threads that block all signals", .argv = { "tests/victims/hammer", "--threads", "4", "--ops", "100",
	  "--block-signals" }, .start = "r", .end = "s" },
	{ .name = "registers", .argv = { "tests/victims/registers", "tests/victims" }, .start = "r", .end = "g",
	  .zero = { "wrong" } },
	{ .name = "numbered signals", .argv = { "tests/victims/rtsignals" }, .end = "g", .zero = { "bad" },
	  .signals = true },
	{ .name = "births of threads", .argv = { "tests/victims/births" }, .start = "r", .end = "s" },
	{ .name = "forks", .argv = { "tests/victims/forktree" }, .start = "gggg", .answers = true, .end = "g",
	  .zero = { "bad" } },
	{ .name = "vfork, posix_spawn, system", .argv = { "tests/victims/spawner" }, .start = "gg", .answers = true,
	  .end = "g", .zero = { "bad" }, .other_actions = true },
	{ .name = "waits in the kernel", .argv = { "tests/victims/waiters" }, .end = "w", .waits = true,
	  .unstoppable = true },
	{ .name = "a handler at 1 kHz", .argv = { "tests/victims/ticker" }, .start = "g", .answers = true, .end = "g",
	  .zero = { "stray" } },
	{ .name = "a SIGTRAP handler of its own", .argv = { "tests/victims/trapper" }, .start = "g", .answers = true,
	  .end = "g", .equal = { "raised", "caught" }, .other_actions = true },
	{ .name = "a seccomp filter", .argv = { "tests/victims/filtered" }, .start = "gg", .answers = true, .end = "g",
	  .filtered = true },
	{ .name = "exec", .argv = { "tests/victims/execer" }, .start = "ggg", .answers = true, .end = "a",
	  .other_actions = true },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct subject *start_target(const struct kind *kind)
{
	const char *folder = kind->argv[1] && kind->argv[1][0] == 't' ?
			     live_text("%s/%s", live_build(), kind->argv[1]) : kind->argv[1];

	return victim_start(kind->argv[0], folder, kind->argv[2], kind->argv[3], kind->argv[4], kind->argv[5], NULL);
}

static void set_to_work(struct subject *target, const struct kind *kind)
{
	for (const char *c = kind->start; c && *c; c++)
		subject_send(target, *c);
}

static void send_signals(pid_t pid, int *number)
{
	for (unsigned i = 0; i < SIGNALS; i++) {
		union sigval value = { .sival_int = *number };

		if (sigqueue(pid, SIGRTMIN + 1, value) < 0)
			return;
		(*number)++;
	}
}

static bool is_gone(pid_t pid, int *ret_status)
{
	return waitpid(pid, ret_status, WNOHANG) == pid;
}

static void require_alive(pid_t pid, const char *when)
{
	int status;

	if (!is_gone(pid, &status))
		return;
	end_round(DEAD, "%s: wait status 0x%x", when, (unsigned)status);
}

/* Its own word. */
static void judge(struct subject *target, const struct kind *kind, int signals_sent)
{
	size_t answers = kind->answers ? strlen(kind->start) : 0;
	long broken;
	int status;

	require_alive(target->pid, "while it was traced");
	for (size_t i = 0; i < answers; i++)
		subject_line(target);
	for (const char *c = kind->end; *c; c++)
		subject_send(target, *c);
	subject_line(target);
	for (size_t i = 0; i < 3 && kind->zero[i]; i++) {
		if (subject_tally(target, kind->zero[i]) != 0)
			end_round(CORRUPT, "it says: %s", target->line);
	}
	if (kind->equal[0] && subject_tally(target, kind->equal[0]) != subject_tally(target, kind->equal[1]))
		end_round(CORRUPT, "it says: %s", target->line);
	if (kind->signals && subject_tally(target, "received") != signals_sent)
		end_round(CORRUPT, "%d signals were sent, and it says: %s", signals_sent, target->line);
	broken = kind->waits ? subject_tally(target, "broken") : 0;
	subject_send(target, 'q');
	status = subject_wait(target);
	if (status != 0)
		end_round(DEAD, "at its end: wait status 0x%x", (unsigned)status);
	if (broken > 0)
		end_round(BROKEN_OFF, "%ld of its waits", broken);
}

/* --- what may be left --- */

/* Of a process that runs: what it may change itself is left out. */
struct outline {
	long long caught, ignored, blocked;
	unsigned executable;           /* mappings */
};

static unsigned count_executable(pid_t pid)
{
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "r");
	char line[1024], permissions[8];
	unsigned count = 0;

	while (maps && fgets(line, sizeof(line), maps))
		count += sscanf(line, "%*s %7s", permissions) == 1 && permissions[2] == 'x';
	if (maps)
		fclose(maps);
	return count;
}

/* The two signals of the C library's own come when it needs them. */
#define LIBC_SIGNALS (3LL << 31)

static struct outline outline(pid_t pid)
{
	return (struct outline){ .caught = status_number(pid, "SigCgt", 16) & ~LIBC_SIGNALS,
				 .ignored = status_number(pid, "SigIgn", 16) & ~LIBC_SIGNALS,
				 .blocked = status_number(pid, "SigBlk", 16), .executable = count_executable(pid) };
}

static const char *outline_difference(const struct outline *was, const struct outline *is)
{
	if (was->caught != is->caught)
		return live_text("SigCgt was %llx, is %llx", was->caught, is->caught);
	if (was->ignored != is->ignored)
		return live_text("SigIgn was %llx, is %llx", was->ignored, is->ignored);
	if (was->blocked != is->blocked)
		return live_text("SigBlk was %llx, is %llx", was->blocked, is->blocked);
	if (was->executable != is->executable)
		return live_text("%u executable mappings, now %u", was->executable, is->executable);
	return NULL;
}

/* Of one that has ended there is none. */
static const char *text_left(pid_t pid)
{
	char state = proc_stat_state(live_text("/proc/%d/stat", pid));
	size_t bytes;

	return state == '\0' || state == 'Z' || state == 'X' ? NULL : text_difference(pid, &bytes);
}

static bool text_is_intact(void *context)
{
	return text_left(*(pid_t *)context) == NULL;
}

struct look {
	pid_t pid;
	const struct outline *before;
	const char *difference;        /* when it was looked at last; NULL: none */
};

/* A handler that runs has its own mask for a moment. */
static bool is_as_before(void *context)
{
	struct look *look = context;
	struct outline now = outline(look->pid);

	look->difference = outline_difference(look->before, &now);
	return look->difference == NULL;
}

static void require_clean(pid_t pid, const struct kind *kind, const struct outline *before)
{
	struct look look = { .pid = pid, .before = before };

	require_alive(pid, "before it was looked at");
	if (!live_wait(text_is_intact, &pid, FREE_MS))
		end_round(LEFTOVERS, "text: %s", text_left(pid));
	if (!live_wait(state_is_untraced, &pid, FREE_MS))
		end_round(LEFTOVERS, "it is still traced");
	if (!kind->other_actions && !live_wait(is_as_before, &look, FREE_MS))
		end_round(LEFTOVERS, "%s", look.difference);
}

/* --- phases and deeds --- */

enum phase { IN_ATTACH, IN_TRACING, IN_SNAPSHOT, IN_DETACH, IN_HEALING, PHASES };
enum deed { KILL_TRACER, KILL_DAEMON, KILL_BOTH, STOP_TRACER, TERM_TRACER, INT_TRACER, TERM_DAEMON, DEEDS };

static const char *const phase_names[PHASES] = { "attach", "tracing", "snapshot", "detach", "healing" };
static const char *const deed_names[DEEDS] = { "SIGKILL to the tracer", "SIGKILL to the daemon", "SIGKILL to both",
					       "SIGSTOP to the tracer", "SIGTERM to the tracer", "SIGINT to the tracer",
					       "SIGTERM to the daemon" };
/* Of the phase, in microseconds, within which the moment is drawn. */
static const unsigned phase_us[PHASES] = { 8000, 30000, 4000, 8000, 6000 };

static pid_t begin_phase(struct tool *tool, pid_t pid, enum phase phase)
{
	pid_t client = 0;

	/* Refused is one that waits in vfork. */
	if (phase != IN_ATTACH && tool_try(tool, "attach", pid_text(pid), NULL).status != 0)
		end_round(MISSED, "it could not be attached to");
	if (phase == IN_ATTACH) {
		client = tool_begin(tool, "attach", pid_text(pid), NULL);
		if (draw(4) > 0)           /* else the parsing before is met, too */
			live_wait(state_is_traced, &pid, 5000);
	} else if (phase == IN_SNAPSHOT) {
		client = tool_begin(tool, "snapshot", pid_text(pid), "--blocks", NULL);
	} else if (phase == IN_DETACH) {
		client = tool_begin(tool, "detach", pid_text(pid), NULL);
	}
	return client;
}

/* The daemon's child that heals; 0: there is none (any more, or yet). */
static pid_t find_healer(pid_t daemon)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t healer = 0;

	while (proc && healer == 0 && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		char command[256] = "";
		FILE *f;

		if (pid <= 0 || proc_parent(pid) != daemon || !(f = fopen(live_text("/proc/%d/cmdline", pid), "r")))
			continue;
		command[fread(command, 1, sizeof(command) - 1, f)] = '\0';
		fclose(f);
		if (!strcmp(command, "allocwatch-tracer") && !strcmp(command + sizeof("allocwatch-tracer"), "--heal"))
			healer = pid;
	}
	if (proc)
		closedir(proc);
	return healer;
}

static void end_daemon(struct tool *tool, int sig)
{
	kill(tool_daemon(tool), sig);
	waitpid(tool_daemon(tool), NULL, 0);
}

static bool hit(pid_t pid, int sig)
{
	return pid > 0 && kill(pid, sig) == 0;
}

/* False when there was nobody to do it to. */
static bool do_deed(struct tool *tool, enum deed deed, pid_t victim)
{
	switch (deed) {
	case KILL_TRACER:
		return hit(victim, SIGKILL);
	case STOP_TRACER:
		return hit(victim, SIGSTOP);
	case TERM_TRACER:
		return hit(victim, SIGTERM);
	case INT_TRACER:
		return hit(victim, SIGINT);
	case KILL_BOTH:
		kill(tool_daemon(tool), SIGSTOP);      /* else it heals first */
		hit(victim, SIGKILL);
		end_daemon(tool, SIGKILL);
		return victim > 0;
	case KILL_DAEMON:
		end_daemon(tool, SIGKILL);
		return true;
	default:
		end_daemon(tool, SIGTERM);
		return true;
	}
}

static bool is_over(void *context)
{
	return waitpid(*(pid_t *)context, NULL, WNOHANG) != 0;
}

/* What a person would do afterwards: let go what is still traced, and heal where no daemon was left to. */
static void put_in_order(struct tool *tool, pid_t pid, bool daemon_lives, pid_t client)
{
	if (client > 0 && !live_wait(is_over, &client, CLIENT_MS))
		end_round(DEAD, "the client got no answer");
	if (daemon_lives) {
		if (tool_lists(tool, pid))
			tool_try(tool, "detach", pid_text(pid), NULL);
		/* One that was lost is listed until it is detached from; healing may still be under way, or have
		 * been killed by us. */
		live_wait(state_is_untraced, &pid, FREE_MS);
		end_daemon(tool, SIGTERM);
	} else if (!live_wait(state_is_untraced, &pid, FREE_MS)) {
		end_round(LEFTOVERS, "its tracer did not leave when the daemon had died");
	}
	if (text_left(pid))
		tool_heal(pid_text(pid));
}

static void stop_and_go_on(pid_t pid)
{
	kill(pid, SIGSTOP);
	live_let_pass(draw(2000) * NSEC_PER_USEC);
	kill(pid, SIGCONT);
}

static bool daemon_dies(enum deed deed)
{
	return deed == KILL_DAEMON || deed == KILL_BOTH || deed == TERM_DAEMON;
}

static const char *why_unsafe(json_t *status)
{
	if (json_is_true(json_object_get(status, "crash_safe")))
		return NULL;
	live_note("crash_safe is false: %s", json_text(status, "crash_safe_reason"));
	return json_text(status, "crash_safe_reason");
}

static pid_t find_victim(struct tool *tool, pid_t pid, enum phase phase)
{
	uint64_t deadline;
	pid_t victim = (pid_t)status_number(pid, "TracerPid", 10);

	if (phase != IN_HEALING)
		return victim;
	hit(victim, SIGKILL);
	deadline = clock_monotonic_ns() + 200 * NSEC_PER_MSEC;
	do {
		victim = find_healer(tool_daemon(tool));
	} while (victim == 0 && !clock_passed(deadline));
	return victim;
}

static void play(enum phase phase, enum deed deed, const struct kind *kind)
{
	struct tool *tool = tool_start_named(live_text("round-%d", getpid()));
	struct subject *target = start_target(kind);
	struct outline before = outline(target->pid);
	bool from_outside = draw(4) == 0 && !kind->unstoppable, done;
	int sent = 0;
	pid_t client, victim;

	set_to_work(target, kind);
	client = begin_phase(tool, target->pid, phase);
	if (kind->signals)
		send_signals(target->pid, &sent);
	if (phase == IN_TRACING)
		unsafe_reason = why_unsafe(tool_status(tool, target->pid));
	if (kind->filtered && phase != IN_TRACING && phase != IN_SNAPSHOT)
		unsafe_reason = "a system call is made in a process with a filter that kills";
	victim = find_victim(tool, target->pid, phase);
	if (from_outside)
		stop_and_go_on(target->pid);
	live_let_pass(draw(phase_us[phase]) * NSEC_PER_USEC);
	done = do_deed(tool, deed, victim);
	if (kind->signals)
		send_signals(target->pid, &sent);
	if (from_outside)
		stop_and_go_on(target->pid);
	put_in_order(tool, target->pid, !daemon_dies(deed), client);
	require_clean(target->pid, kind, &before);
	if (kind->signals)
		send_signals(target->pid, &sent);
	judge(target, kind, sent);
	if (!done)
		end_round(MISSED, "nobody to do it to");
	_exit(100 + LIVED);
}

/* --- rounds --- */

struct round {
	enum phase phase;
	enum deed deed;
	const struct kind *kind;
};

static struct round draw_round(uint64_t number)
{
	struct round round;

	drawn = number | 1;
	round.phase = (enum phase)draw(PHASES);
	round.deed = (enum deed)draw(DEEDS);
	round.kind = &kinds[draw(KINDS)];
	/* A healer has no signals that it understands, and no daemon that it needs. */
	if (round.phase == IN_HEALING)
		round.deed = draw(2) ? KILL_TRACER : KILL_BOTH;
	return round;
}

static enum outcome play_round(uint64_t number, struct round *ret_round)
{
	struct round round = draw_round(number);
	int status;
	pid_t pid;

	*ret_round = round;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		play(round.phase, round.deed, round.kind);
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) < 100 || WEXITSTATUS(status) >= 100 + OUTCOMES)
		return DEAD;
	return (enum outcome)(WEXITSTATUS(status) - 100);
}

static unsigned deeds_in(const unsigned *counts)
{
	unsigned sum = 0;

	for (unsigned outcome = 0; outcome < OUTCOMES; outcome++)
		sum += outcome == MISSED ? 0 : counts[outcome];
	return sum;
}

static void tell_table(unsigned counts[PHASES][OUTCOMES])
{
	printf("# %-10s %8s %8s %8s %8s %8s %8s %8s\n", "phase", "deeds", "lived", "waits", "unsafe", "left", "corrupt",
	       "dead");
	for (unsigned phase = 0; phase < PHASES; phase++) {
		const unsigned *c = counts[phase];

		printf("# %-10s %8u %8u %8u %8u %8u %8u %8u\n", phase_names[phase], deeds_in(c), c[LIVED], c[BROKEN_OFF],
		       c[UNSAFE], c[LEFTOVERS], c[CORRUPT], c[DEAD]);
	}
}

static void targets_outlive_whatever_happens_to_who_traces_them(void)
{
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG), harmed = 0, broken = 0;
	unsigned counts[PHASES][OUTCOMES] = { { 0 } };
	const char *replay = getenv("LIVE_CHAOS");
	struct round round;

	if (replay)
		rounds = 1;
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t number = replay ? strtoull(replay, NULL, 0) : live_random(1ULL << 47);
		enum outcome outcome = play_round(number, &round);

		counts[round.phase][outcome]++;
		if (outcome <= MISSED)
			continue;
		broken += outcome == BROKEN_OFF;
		harmed += outcome > UNSAFE;
		live_note("%s: %s in the %s of '%s'; LIVE_CHAOS=0x%llx plays it again", outcome_names[outcome],
			  deed_names[round.deed], phase_names[round.phase], round.kind->name,
			  (unsigned long long)number);
	}
	tell_table(counts);
	for (unsigned phase = 0; phase < PHASES; phase++) {
		const unsigned *c = counts[phase];

		live_survey(live_text("chaos in the %s", phase_names[phase]), deeds_in(c) + c[MISSED], deeds_in(c), deeds_in(c),
			    deeds_in(c) - c[UNSAFE] - c[LEFTOVERS] - c[CORRUPT] - c[DEAD]);
	}
	require_equal(harmed, 0);
	if (broken > rounds / BROKEN_MOST + 1)
		live_fail("in %u of %u rounds waits were broken off", broken, rounds);
}

static const struct live_case cases[] = {
	LIVE_CASE(targets_outlive_whatever_happens_to_who_traces_them),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
