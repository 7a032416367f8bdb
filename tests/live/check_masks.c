/* SIGTRAP is taken out of the masks of threads that are traced; each thread has its own mask back after a detach, after the
 * tracer's death at any moment, and so have the children that were forked meanwhile. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"
#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MASKS "tests/victims/masks"
#define SIGTRAP_BIT (1ULL << (SIGTRAP - 1))
#define THREADS_MAX 64
#define CHILDREN 12
#define BLOCKERS 8                     /* of the 12 threads */
#define HEAL_MS 10000
#define ASKED_MS 10000
#define LOG_MS 10000
#define SETTLE_MS 1000
#define TRAPS 60                       /* each beside a fork */
#define ROUNDS 6
#define ROUNDS_LONG 300
#define ATTACH_NS (40 * NSEC_PER_MSEC)

struct masks {
	size_t count;
	struct {
		pid_t tid;
		unsigned long long mask;
	} thread[THREADS_MAX];
};

/* status_number() has no sign to spare for signal 64. */
static unsigned long long mask_of(pid_t tid)
{
	FILE *status = fopen(live_text("/proc/%d/status", tid), "r");
	unsigned long long mask = 0;
	char line[256];
	bool found = false;

	while (status && !found && fgets(line, sizeof(line), status))
		found = sscanf(line, "SigBlk: %llx", &mask) == 1;
	if (status)
		fclose(status);
	require(found);
	return mask;
}

static struct masks masks_take(pid_t pid)
{
	struct masks masks = { .count = 0 };
	DIR *dir = opendir(live_text("/proc/%d/task", pid));
	struct dirent *entry;

	require(dir);
	while ((entry = readdir(dir)) && masks.count < THREADS_MAX) {
		pid_t tid = atoi(entry->d_name);

		if (tid <= 0)
			continue;
		masks.thread[masks.count].tid = tid;
		masks.thread[masks.count++].mask = mask_of(tid);
	}
	closedir(dir);
	return masks;
}

static unsigned blockers(const struct masks *masks)
{
	unsigned count = 0;

	for (size_t i = 0; i < masks->count; i++)
		count += (masks->thread[i].mask & SIGTRAP_BIT) != 0;
	return count;
}

static bool are_as_before(void *context)
{
	const struct masks *before = context;

	for (size_t i = 0; i < before->count; i++) {
		if (mask_of(before->thread[i].tid) != before->thread[i].mask)
			return false;
	}
	return true;
}

/* Returns how many were compared.  A thread that makes another one blocks all for a moment. */
static unsigned require_same_masks(struct masks *before, const char *when)
{
	live_wait(are_as_before, before, SETTLE_MS);
	for (size_t i = 0; i < before->count; i++) {
		unsigned long long now = mask_of(before->thread[i].tid);

		if (now != before->thread[i].mask)
			live_fail("%s: SigBlk of thread %d was %016llx, is %016llx", when, before->thread[i].tid,
				  before->thread[i].mask, now);
	}
	return (unsigned)before->count;
}

static void require_unblocked(const struct masks *before)
{
	for (size_t i = 0; i < before->count; i++) {
		unsigned long long now = mask_of(before->thread[i].tid);

		if (now & SIGTRAP_BIT)
			live_fail("thread %d has SigBlk %016llx while it is traced, had %016llx", before->thread[i].tid, now,
				  before->thread[i].mask);
	}
}

static struct subject *start(struct masks *ret_before)
{
	struct subject *victim = victim_start(MASKS, "--births", NULL);

	*ret_before = masks_take(victim->pid);
	require_equal(blockers(ret_before), BLOCKERS);
	return victim;
}

/* So that nothing heals before it is asked to. */
static void kill_both(struct tool *tool, pid_t pid)
{
	pid_t tracer = tool_find_tracer(pid);

	kill(tool_daemon(tool), SIGSTOP);
	if (tracer > 0)
		kill(tracer, SIGKILL);
	tool_kill_daemon(tool);
	require(live_wait(state_has_no_tracer, &pid, HEAL_MS));
}

static void masks_are_as_before_after_a_detach(void)
{
	struct tool *tool = tool_start();
	struct masks before;
	struct subject *victim = start(&before);
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG), compared = 0;

	for (unsigned i = 0; i < rounds; i++) {
		subject_send(victim, 'r');
		live_let_pass(live_random(2 * NSEC_PER_MSEC));
		tool_attach_held(tool, victim->pid);
		tool_detach(tool, victim->pid);
		subject_command(victim, 's');
		compared += require_same_masks(&before, "after a detach");
	}
	live_note("%u masks compared after %u detaches", compared, rounds);
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

static void masks_are_as_before_when_the_tracer_died_in_tracing(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(ROUNDS, ROUNDS_LONG), compared = 0;

	for (unsigned i = 0; i < rounds; i++) {
		struct masks before;
		struct subject *victim = start(&before);

		tool_attach_held(tool, victim->pid);
		require_unblocked(&before);
		subject_send(victim, 'r');
		live_let_pass(live_random(5 * NSEC_PER_MSEC));
		kill_both(tool, victim->pid);
		require_equal(tool_heal(pid_text(victim->pid)), 0);
		subject_command(victim, 's');
		compared += require_same_masks(&before, "after healing");
		require_unharmed(victim->pid, NULL);
		subject_quit(victim);
		tool_start_again(tool);
	}
	live_note("%u masks compared after %u deaths", compared, rounds);
	live_survey("masks after a death in tracing", rounds, rounds, rounds, rounds);
}

static void masks_are_as_before_when_the_tracer_died_in_the_attach_or_the_detach(void)
{
	struct tool *tool = tool_start();
	unsigned rounds = live_rounds(2 * ROUNDS, 2 * ROUNDS_LONG), compared = 0, hit = 0;

	for (unsigned i = 0; i < rounds; i++) {
		struct masks before;
		struct subject *victim = start(&before);
		pid_t client;

		if (i % 2) {
			tool_attach_held(tool, victim->pid);
			client = tool_begin(tool, "detach", pid_text(victim->pid), NULL);
		} else {
			client = tool_begin(tool, "attach", pid_text(victim->pid), NULL);
			live_wait(state_is_traced, &victim->pid, 5000);
		}
		live_let_pass(live_random(ATTACH_NS));
		hit += state_is_traced(&victim->pid);
		kill_both(tool, victim->pid);
		waitpid(client, NULL, 0);
		require_equal(tool_heal(pid_text(victim->pid)), 0);
		compared += require_same_masks(&before, i % 2 ? "killed in the detach" : "killed in the attach");
		require_unharmed(victim->pid, NULL);
		subject_quit(victim);
		tool_start_again(tool);
	}
	live_note("%u masks compared, %u of %u tracers were killed at work", compared, hit, rounds);
	live_survey("masks after a death in attach or detach", rounds, hit, rounds, rounds);
}

/* The children that each thread has forked. */
static unsigned require_children_like_threads(const struct masks *before)
{
	unsigned compared = 0;

	for (size_t i = 0; i < before->count; i++) {
		pid_t tid = before->thread[i].tid;
		FILE *list = fopen(live_text("/proc/%d/task/%d/children", tid, tid), "r");
		int child;

		while (list && fscanf(list, "%d", &child) == 1) {
			if (mask_of(child) != before->thread[i].mask)
				live_fail("SigBlk of child %d is %016llx, its parent's was %016llx", child, mask_of(child),
					  before->thread[i].mask);
			text_require_intact(child);
			compared++;
		}
		if (list)
			fclose(list);
	}
	return compared;
}

static void children_forked_before_and_after_the_tracers_death_have_their_masks(void)
{
	struct tool *tool = tool_start();
	struct masks before;
	struct subject *victim = start(&before);

	tool_attach_held(tool, victim->pid);
	subject_command(victim, 'f');
	require_equal(require_children_like_threads(&before), CHILDREN);
	kill_both(tool, victim->pid);
	subject_command(victim, 'f');
	require_equal(tool_heal(pid_text(victim->pid)), 0);
	require_equal(require_children_like_threads(&before), 2 * CHILDREN);
	require_same_masks(&before, "after healing");
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

/* Each child's tracer is a copy of the parent's, with the parent's notes: they are not its own to take out. */
static void followed_children_leave_their_parents_notes_alone(void)
{
	struct tool *tool = tool_start();
	struct masks before;
	struct subject *victim = start(&before);

	tool_out(tool, "attach", pid_text(victim->pid), "--follow-forks", NULL);
	subject_command(victim, 'f');
	kill_both(tool, victim->pid);
	require_equal(tool_heal(pid_text(victim->pid)), 0);
	live_note("%u masks compared", require_same_masks(&before, "after followed forks, a death and healing"));
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

/* A handler's mask is no thread's, and is not noted as one: whatever ends the tracing, the signal is free after it. */
static void a_thread_that_is_attached_to_in_its_handler_blocks_nothing_later(void)
{
	struct tool *tool = tool_start();

	for (unsigned round = 0; round < 4; round++) {
		struct subject *trapper = victim_start("tests/victims/trapper", NULL);
		unsigned long long before = mask_of(trapper->pid);

		require_text(subject_command(trapper, 'w'), "in");
		require(mask_of(trapper->pid) & SIGTRAP_BIT);
		tool_attach_held(tool, trapper->pid);
		if (round % 2)
			subject_command(trapper, 'x');
		if (round < 2) {
			tool_detach(tool, trapper->pid);
		} else {
			kill(tool_tracer(trapper->pid), SIGKILL);
			require(live_wait(state_text_is_intact, &trapper->pid, HEAL_MS));
			require(live_wait(state_is_untraced, &trapper->pid, HEAL_MS));
		}
		if (round % 2 == 0)
			subject_command(trapper, 'x');
		require_equal(mask_of(trapper->pid), before);
		subject_command(trapper, 'g');
		require_equal(subject_tally(trapper, "raised"), 2);
		require_equal(subject_tally(trapper, "caught"), 2);
		require_equal(subject_tally(trapper, "child"), 1);
		subject_quit(trapper);
	}
}

/* Ours is gone by then. */
static void a_handler_that_began_while_traced_ends_after_it(void)
{
	struct tool *tool = tool_start();

	for (unsigned round = 0; round < 2; round++) {
		struct subject *trapper = victim_start("tests/victims/trapper", NULL);

		subject_command(trapper, 'g');
		tool_attach_held(tool, trapper->pid);
		require_text(subject_command(trapper, 'w'), "in");
		if (round == 0) {
			tool_detach(tool, trapper->pid);
		} else {
			kill(tool_tracer(trapper->pid), SIGKILL);
			require(live_wait(state_text_is_intact, &trapper->pid, HEAL_MS));
			require(live_wait(state_is_untraced, &trapper->pid, HEAL_MS));
		}
		subject_command(trapper, 'x');
		require_equal(subject_tally(trapper, "raised"), 2);
		require_equal(subject_tally(trapper, "caught"), 2);
		subject_quit(trapper);
	}
}

/* One that comes while the handler is taken out is the program's all the same. */
static void own_traps_are_caught_through_attach_and_detach(void)
{
	struct tool *tool = tool_start();
	struct subject *trapper = victim_start("tests/victims/trapper", NULL);
	unsigned rounds = live_rounds(8, 200), lines = 0;

	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < TRAPS; i++)
			subject_send(trapper, 'g');
		tool_attach_held(tool, trapper->pid);
		for (; lines < round * TRAPS + TRAPS / 2; lines++)
			subject_line(trapper);
		tool_detach(tool, trapper->pid);
	}
	for (; lines < rounds * TRAPS; lines++)
		subject_line(trapper);
	require_equal(subject_tally(trapper, "raised"), lines);
	require_equal(subject_tally(trapper, "caught"), lines);
	require_equal(subject_tally(trapper, "child"), lines);
	require_unharmed(trapper->pid, NULL);
	subject_quit(trapper);
}

struct question {
	struct tool *tool;
	pid_t pid;
	const char *reason;            /* why it is not safe; NULL: it is */
};

static bool status_says(void *context)
{
	const struct question *question = context;
	json_t *status = tool_status(question->tool, question->pid);
	bool safe = json_is_true(json_object_get(status, "crash_safe"));

	return question->reason ? !safe && strstr(json_text(status, "crash_safe_reason"), question->reason) : safe;
}

/* A handler is asked for once a second. */
static void require_status(struct tool *tool, pid_t pid, const char *reason)
{
	struct question question = { tool, pid, reason };

	if (!live_wait(status_says, &question, ASKED_MS))
		live_fail("status does not say: %s", reason ? reason : "crash_safe");
}

static void require_safe(struct tool *tool, pid_t pid)
{
	require_status(tool, pid, NULL);
}

static void require_unsafe(struct tool *tool, struct subject *trapper, char command, const char *reason)
{
	require_text(subject_command(trapper, command), "done");
	require_status(tool, trapper->pid, reason);
}

static void what_a_program_does_by_system_calls_of_its_own_is_told(void)
{
	struct tool *tool = tool_start();
	struct subject *trapper = victim_start("tests/victims/trapper", NULL);
	struct state *before = state_take(trapper->pid);

	tool_attach_held(tool, trapper->pid);
	require_safe(tool, trapper->pid);
	require_unsafe(tool, trapper, 'b', "blocks SIGTRAP");
	require_text(subject_command(trapper, 'u'), "done");
	require_safe(tool, trapper->pid);
	require_unsafe(tool, trapper, 'i', "ignores SIGTRAP");
	require_text(subject_command(trapper, 'o'), "done");
	require_safe(tool, trapper->pid);
	require_unsafe(tool, trapper, 'd', "reset SIGTRAP");
	require_text(subject_command(trapper, 'o'), "done");
	require_safe(tool, trapper->pid);
	require_unsafe(tool, trapper, 'h', "SIGTRAP handler of its own");
	require_text(subject_command(trapper, 'o'), "done");
	require_safe(tool, trapper->pid);
	tool_end(tool, trapper, before);
}

/* What the answer advises: a handler that was there before is kept, and ours is in front of it. */
static void a_handler_set_by_a_system_call_is_safe_after_another_attach(void)
{
	struct tool *tool = tool_start();
	struct subject *trapper = victim_start("tests/victims/trapper", NULL);

	tool_attach_held(tool, trapper->pid);
	require_unsafe(tool, trapper, 'h', "attach again");
	tool_detach(tool, trapper->pid);
	subject_command(trapper, 'r');
	require_equal(subject_tally(trapper, "caught"), 1);
	tool_attach_held(tool, trapper->pid);
	require_safe(tool, trapper->pid);
	kill_both(tool, trapper->pid);
	subject_command(trapper, 'r');
	require_equal(subject_tally(trapper, "caught"), 2);
	require_equal(tool_heal(pid_text(trapper->pid)), 0);
	subject_command(trapper, 'r');
	require_equal(subject_tally(trapper, "caught"), 3);
	require_unharmed(trapper->pid, NULL);
	subject_quit(trapper);
}

static bool tells_of_the_handler(void *context)
{
	bool told = false;
	char *text;

	if (file_read_text(context, 1 << 20, &text, NULL) == 0) {
		told = strstr(text, "SIGTRAP handler of its own") != NULL;
		free(text);
	}
	return told;
}

/* By a look at one of its stops, once a second. */
static void a_handler_set_by_a_system_call_is_told_in_the_log(void)
{
	const char *log = live_text("%s/log", live_folder());
	int errors = dup(STDERR_FILENO), file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	struct subject *trapper;
	struct tool *tool;
	struct state *before;

	require(errors >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
	tool = tool_start();
	require(dup2(errors, STDERR_FILENO) >= 0);
	trapper = victim_start("tests/victims/trapper", NULL);
	before = state_take(trapper->pid);
	tool_attach_held(tool, trapper->pid);
	subject_command(trapper, 'h');
	subject_command(trapper, 'm');
	require(live_wait(tells_of_the_handler, (void *)log, LOG_MS));
	subject_command(trapper, 'o');
	tool_end(tool, trapper, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(masks_are_as_before_after_a_detach),
	LIVE_CASE(masks_are_as_before_when_the_tracer_died_in_tracing),
	LIVE_CASE(masks_are_as_before_when_the_tracer_died_in_the_attach_or_the_detach),
	LIVE_CASE(children_forked_before_and_after_the_tracers_death_have_their_masks),
	LIVE_CASE(followed_children_leave_their_parents_notes_alone),
	LIVE_CASE(a_thread_that_is_attached_to_in_its_handler_blocks_nothing_later),
	LIVE_CASE(a_handler_that_began_while_traced_ends_after_it),
	LIVE_CASE(own_traps_are_caught_through_attach_and_detach),
	LIVE_CASE(what_a_program_does_by_system_calls_of_its_own_is_told),
	LIVE_CASE(a_handler_set_by_a_system_call_is_safe_after_another_attach),
	LIVE_CASE(a_handler_set_by_a_system_call_is_told_in_the_log),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
