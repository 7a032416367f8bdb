/* Signals, waits and registers: what a target must not notice. */
#include "handlers.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void a_handler_at_1_khz_allocates(void)
{
	require_handlers_blocks(tool_attach, "--no-altstack");
}

static void a_handler_on_a_sigaltstack_allocates(void)
{
	require_handlers_blocks(tool_attach, NULL);
}

/* How many of 1,000 stacks that a handler takes do not reach main; all is counted as ever. */
static long cut_stacks(void (*attach)(struct tool *tool, pid_t pid))
{
	struct tool *tool = tool_start();
	struct subject *profiled = victim_start("tests/victims/profiled", NULL);
	unsigned rounds = live_rounds(3, 60);
	struct state *before;
	long cut;

	/* All are whole where nobody traces it. */
	subject_command(profiled, 'g');
	require_equal(subject_tally(profiled, "cut"), 0);
	subject_quit(profiled);
	profiled = victim_start("tests/victims/profiled", NULL);
	before = state_take(profiled->pid);
	attach(tool, profiled->pid);
	for (unsigned i = 0; i < rounds; i++)
		subject_command(profiled, 'g');
	require_at_least(subject_tally(profiled, "handled"), 100);
	cut = 1000 * subject_tally(profiled, "cut") / subject_tally(profiled, "handled");
	require_tally(tool, profiled, 0);
	live_note("%ld stacks taken by a handler, %ld of 1,000 cut short", subject_tally(profiled, "handled"), cut);
	tool_end(tool, profiled, before);
	return cut;
}

/* It goes on at a place that has CFI, but for who has just recorded a call. */
static void a_profiler_in_the_process_sees_whole_stacks(void)
{
	long cut = cut_stacks(tool_attach_held);

	require(cut < 250);
}

static void release(struct tool *tool, pid_t pid)
{
	tool_out(tool, "attach", "--release", "--ring-wait", "30s", pid_text(pid), NULL);
	require(json_is_true(json_object_get(tool_status(tool, pid), "released")));
	/* It may be seized for a moment, for a handler that has come in the midst of a record. */
	require(live_wait(state_has_no_tracer, &pid, 10000));
}

/* Nobody puts the thread elsewhere; its stacks end in our code, and nothing else happens. */
static void a_profiler_in_a_process_without_ptrace_does_no_harm(void)
{
	cut_stacks(release);
}

/* Wherever in a call its thread was: that one is pending all the same. */
static void handlers_allocate_in_the_midst_of_calls(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start("tests/victims/interrupted", "--threads", "8", "--hits", "8", "--sleep-ms", "0", NULL);
	struct state *before = state_take(victim->pid);

	tool_out(tool, "attach", pid_text(victim->pid), "--engine", "ring", NULL);
	for (unsigned i = 0; i < live_rounds(1, 100); i++) {
		subject_command(victim, 'a');
		require_tally(tool, victim, 0);
	}
	live_survey("handlers that allocate in the midst of calls", (unsigned)subject_tally(victim, "hits"), 0, 1, 1);
	tool_end(tool, victim, before);
}

/* To each thread but the main one, which does not allocate.  Returns how many were sent. */
static long signal_workers(pid_t pid, int sig)
{
	DIR *dir = opendir(live_text("/proc/%d/task", pid));
	struct dirent *entry;
	long sent = 0;

	if (!dir)
		live_fail("the threads of %d: %s", pid, strerror(errno));
	while ((entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && tid != pid)
			sent += syscall(SYS_tgkill, pid, tid, sig) == 0;
	}
	closedir(dir);
	return sent;
}

/* A signal that comes between the int3 and the instruction that it displaced brings the thread back to the
 * int3; the call is one call all the same. */
static void a_call_that_a_signal_interrupts_is_counted_once(void)
{
	struct tool *tool = tool_start();
	struct subject *churner = victim_start("tests/victims/rtsignals", NULL);
	struct state *before = state_take(churner->pid);
	long sent = 0, allocations = 0;
	json_t *status;

	tool_attach(tool, churner->pid);
	while (allocations < 5000 || sent < 1000) {
		for (int i = 0; i < 20; i++)
			sent += signal_workers(churner->pid, SIGWINCH);
		status = tool_status(tool, churner->pid);
		allocations = (long)json_number(status, "allocations");
	}
	require_equal(json_number(status, "unknown.unknown_frees"), 0);
	require_equal(json_number(status, "unknown.lost_events"), 0);
	live_note("%ld signals, %ld allocations", sent, allocations);
	tool_end(tool, churner, before);
}

/* A signal that comes in between an allocator call and the call within it. */
static void nested_calls_survive(int sig)
{
	struct tool *tool = tool_start();
	struct subject *nested = victim_start("tests/victims/nested", NULL);
	struct state *before = state_take(nested->pid);
	long sent = 0, allocations = 0, least = live_rounds(3000, 100000);
	json_t *status = NULL;

	tool_attach(tool, nested->pid);
	while (!status || sent < least || allocations < least) {
		for (int i = 0; i < 20; i++)
			sent += signal_workers(nested->pid, sig);
		status = tool_status(tool, nested->pid);
		allocations = (long)json_number(status, "allocations");
	}
	require_equal(json_number(status, "unknown.unknown_frees"), 0);
	require_equal(json_number(status, "unknown.lost_events"), 0);
	live_note("%ld signals, %ld allocations", sent, allocations);
	live_survey("signals between nested calls", 1, 0, 1, 1);
	tool_end(tool, nested, before);
}

static void an_ignored_signal_between_nested_calls_does_no_harm(void)
{
	nested_calls_survive(SIGWINCH);
}

static void a_handled_signal_between_nested_calls_does_no_harm(void)
{
	nested_calls_survive(SIGUSR1);
}

struct sender {
	pid_t to;
	int next;
};

/* As many as the queue takes now. */
static void queue_signals(struct sender *sender, int count)
{
	for (int i = 0; i < count; i++) {
		union sigval value = { .sival_int = sender->next };

		if (sigqueue(sender->to, SIGRTMIN + 1, value)) {
			if (errno == EAGAIN)
				return;
			live_fail("sigqueue: %s", strerror(errno));
		}
		sender->next++;
	}
}

static void no_queued_signal_is_lost_doubled_or_reordered(void)
{
	struct tool *tool = tool_start();
	struct subject *receiver = victim_start("tests/victims/rtsignals", NULL);
	struct sender sender = { receiver->pid, 0 };
	struct state *before = state_take(receiver->pid);
	unsigned attaches = live_rounds(10, 200);

	for (unsigned i = 0; i < attaches; i++) {
		queue_signals(&sender, 300);
		tool_attach(tool, receiver->pid);
		queue_signals(&sender, 300);
		tool_detach(tool, receiver->pid);
		queue_signals(&sender, 300);
	}
	do
		subject_command(receiver, 'g');
	while (subject_tally(receiver, "received") < sender.next && subject_tally(receiver, "bad") == 0);
	require_equal(subject_tally(receiver, "bad"), 0);
	require_equal(subject_tally(receiver, "received"), sender.next);
	require_at_least(sender.next, live_rounds(1000, 100000));
	live_note("%d signals in sequence over %u attaches", sender.next, attaches);
	live_survey("queued signals, attach and detach", attaches, 0, 1, 1);
	require_unharmed(receiver->pid, before);
	subject_quit(receiver);
}

static bool is_held(void *context)
{
	pid_t pid = *(pid_t *)context;
	char state = thread_state(pid, pid);

	return state == 'T' || state == 't';     /* of a traced one */
}

/* Stopped by job control, attached to or not, it takes none until it is told to go on.  (Between a tracer's stop and job
 * control's the kernel shows it as running for a moment; it runs none of its own instructions there.) */
static void signals_to_a_stopped_process_wait_for_its_continuation(void)
{
	struct tool *tool = tool_start();
	/* A terminal's stops do nothing to an orphaned group, which this test's own may be. */
	struct subject *receiver = victim_start("tests/victims/rtsignals", "--own-group", NULL);
	struct sender sender = { receiver->pid, 0 };
	struct state *before = state_take(receiver->pid);
	unsigned rounds = live_rounds(4, 200);

	for (unsigned i = 0; i < rounds; i++) {
		kill(receiver->pid, i % 2 ? SIGTTIN : SIGSTOP);
		require(live_wait(is_held, &receiver->pid, 10000));
		queue_signals(&sender, 100);
		tool_attach(tool, receiver->pid);
		queue_signals(&sender, 100);
		tool_out(tool, "snapshot", pid_text(receiver->pid), NULL);
		require(live_wait(is_held, &receiver->pid, 10000));
		if (i % 4 < 2)
			tool_detach(tool, receiver->pid);
		queue_signals(&sender, 100);
		require(live_wait(is_held, &receiver->pid, 10000));
		kill(receiver->pid, SIGCONT);
		if (i % 4 >= 2)
			tool_detach(tool, receiver->pid);
		do
			subject_command(receiver, 'g');
		while (subject_tally(receiver, "received") < sender.next && subject_tally(receiver, "bad") == 0);
		require_equal(subject_tally(receiver, "bad"), 0);
	}
	require_equal(subject_tally(receiver, "received"), sender.next);
	live_note("%d signals to a stopped process", sender.next);
	live_survey("signals to a stopped process", rounds, (unsigned)sender.next, 1, 1);
	require_unharmed(receiver->pid, before);
	subject_quit(receiver);
}

/* At the attach, while traced, at a snapshot and at the detach; and each wait still ends rightly. */
static void no_wait_is_broken_off(void)
{
	struct tool *tool = tool_start();
	struct subject *waiters = victim_start("tests/victims/waiters", NULL);
	struct state *before = state_take(waiters->pid);
	unsigned attaches = live_rounds(5, 200);
	long woken;

	for (unsigned i = 0; i < attaches; i++) {
		tool_attach(tool, waiters->pid);
		tool_out(tool, "snapshot", pid_text(waiters->pid), NULL);
		subject_command(waiters, 'w');
		tool_detach(tool, waiters->pid);
	}
	woken = subject_tally(waiters, "woken");
	require_at_least(woken, attaches * 11);
	subject_command(waiters, 'w');
	require_equal(subject_tally(waiters, "woken") - woken, 11);
	if (subject_tally(waiters, "broken"))
		live_fail("waits were broken off: %s", waiters->line);
	live_note("%s", waiters->line);
	live_survey("waits in system calls", attaches, 0, 1, 1);
	require_unharmed(waiters->pid, before);
	state_require_same(waiters->pid, before, true);
	subject_quit(waiters);
}

static void a_sigtrap_handler_set_while_traced_stays(void)
{
	struct tool *tool = tool_start();
	struct subject *trapper = victim_start("tests/victims/trapper", NULL);

	tool_attach(tool, trapper->pid);
	for (int i = 1; i <= 4; i++) {
		if (i == 3)
			tool_detach(tool, trapper->pid);
		subject_command(trapper, 'g');
		require_equal(subject_tally(trapper, "caught"), i);
		require_equal(subject_tally(trapper, "child"), i);
	}
	live_note("%s", trapper->line);
	subject_quit(trapper);
}

static void require_registers_kept(const char *option)
{
	struct tool *tool = tool_start();
	struct subject *v = victim_start("tests/victims/registers", live_text("%s/tests/victims", live_build()),
					 option, NULL);
	struct state *before = state_take(v->pid);
	json_t *status;

	subject_send(v, 'r');
	for (int i = 0; i < 5; i++) {
		tool_attach(tool, v->pid);
		tool_out(tool, "snapshot", pid_text(v->pid), NULL);
		tool_detach(tool, v->pid);
	}
	tool_attach(tool, v->pid);
	subject_command(v, 'g');
	subject_line(v);
	status = tool_status(tool, v->pid);
	require_at_least(json_number(status, "allocations"), 1000);
	if (subject_tally(v, "wrong"))
		live_fail("a register was changed: %s", v->line);
	live_note("%s", v->line);
	tool_end(tool, v, before);
}

static void every_register_is_kept(void)
{
	require_registers_kept(NULL);
}

/* With a base of gs that the kernel refuses to set, and all other registers with it. */
static void registers_are_set_beside_one_that_cannot_be(void)
{
	require_registers_kept("--gs");
}

static void the_red_zone_is_kept(void)
{
	struct tool *tool = tool_start();
	struct subject *v = victim_start("tests/victims/redzone", NULL);
	struct state *before = state_take(v->pid);

	for (int i = 0; i < 15; i++) {
		tool_attach(tool, v->pid);
		tool_out(tool, "snapshot", pid_text(v->pid), NULL);
		tool_detach(tool, v->pid);
		subject_command(v, 'g');
		require_equal(subject_tally(v, "wrong"), 0);
	}
	live_note("%s", v->line);
	require_unharmed(v->pid, before);
	subject_quit(v);
}

/* With ptrace each is told to its thread, and the thread comes on all the same: a record that it is put back to before, time and again, is
 * made for it. */
static void signals_at_10_khz_hold_nobody_up(void)
{
	static const char *const engines[] = { "int3", "ring" };
	struct tool *tool = tool_start();

	for (size_t i = 0; i < 2; i++) {
		struct subject *stormed = victim_start("tests/victims/stormed", NULL);
		struct state *before = state_take(stormed->pid);

		tool_out(tool, "attach", pid_text(stormed->pid), "--engine", engines[i], NULL);
		for (unsigned k = 0; k < live_rounds(3, 200); k++)
			subject_command(stormed, 'g');
		require_nothing_unknown(tool_status(tool, stormed->pid), 0);
		require_row(tool_stats(tool, pid_text(stormed->pid)), "tests/victims/stormed.c", "/* kept */",
			    subject_tally(stormed, "bytes"), subject_tally(stormed, "blocks"));
		live_note("%s: %ld signals", engines[i], subject_tally(stormed, "signals"));
		require_at_least(subject_tally(stormed, "signals"), 10);
		tool_end(tool, stormed, before);
	}
}

/* A second thread fills the ring as fast as it can.  A signal that waits until what is there has been read waits for all of it, 50
 * times a round; how much is read in one says so whatever else the machine has to do: 3,000,000 allocations, else 200,000. */
static void a_signal_does_not_wait_until_the_ring_is_read(void)
{
	enum { ROUNDS = 8, LEAST = 50000, MOST_A_ROUND = 1000000 };
	struct tool *tool = tool_start();
	struct subject *ticker = victim_start("tests/victims/ticker", "--no-altstack", NULL);
	struct state *before = state_take(ticker->pid);
	long allocations;

	tool_out(tool, "attach", pid_text(ticker->pid), "--engine", "ring", "--hold", NULL);
	for (unsigned i = 0; i < ROUNDS; i++)
		subject_command(ticker, 'g');
	allocations = (long)json_number(tool_status(tool, ticker->pid), "allocations");
	live_note("%ld allocations were read in %d rounds with %ld signals", allocations, ROUNDS, subject_tally(ticker, "ticks"));
	require_at_least(allocations, LEAST);
	require_at_least((long)MOST_A_ROUND * ROUNDS, allocations);
	require_equal(json_number(tool_status(tool, ticker->pid), "unknown.unknown_frees"), 0);
	require_equal(json_number(tool_status(tool, ticker->pid), "unknown.lost_events"), 0);
	tool_end(tool, ticker, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_handler_at_1_khz_allocates),
	LIVE_CASE(a_handler_on_a_sigaltstack_allocates),
	LIVE_CASE(a_profiler_in_the_process_sees_whole_stacks),
	LIVE_CASE(a_profiler_in_a_process_without_ptrace_does_no_harm),
	LIVE_CASE(handlers_allocate_in_the_midst_of_calls),
	LIVE_CASE(a_signal_does_not_wait_until_the_ring_is_read),
	LIVE_CASE(a_call_that_a_signal_interrupts_is_counted_once),
	LIVE_CASE(an_ignored_signal_between_nested_calls_does_no_harm),
	LIVE_CASE(a_handled_signal_between_nested_calls_does_no_harm),
	LIVE_CASE(no_queued_signal_is_lost_doubled_or_reordered),
	LIVE_CASE(signals_to_a_stopped_process_wait_for_its_continuation),
	LIVE_CASE(no_wait_is_broken_off),
	LIVE_CASE(a_sigtrap_handler_set_while_traced_stays),
	LIVE_CASE(every_register_is_kept),
	LIVE_CASE(registers_are_set_beside_one_that_cannot_be),
	LIVE_CASE(the_red_zone_is_kept),
	LIVE_CASE(signals_at_10_khz_hold_nobody_up),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
