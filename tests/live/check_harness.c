/* The live tests' own tools: victims count rightly, and a harmed process is seen to be harmed. */
#include "counter.h"
#include "live.h"
#include "state.h"
#include "subject.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What a process can have done to it, as one thing each. */
static void block_sigtrap(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void handle_sigtrap(void)
{
	signal(SIGTRAP, SIG_IGN);
}

static void map_code(void)
{
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		_exit(1);
}

static void open_descriptor(void)
{
	if (open("/dev/null", O_RDONLY) < 0)
		_exit(1);
}

static void leave_signal_pending(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR1);
	raise(SIGUSR1);
}

static void map_data(void)
{
	if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		_exit(1);
}

/* A child of the test that waits for a byte, does `change`, says so, and waits on. */
static struct subject *start_changing(void (*change)(void))
{
	struct subject *subject = calloc(1, sizeof(*subject));
	int in[2], out[2];
	char c;

	if (!subject || pipe(in) || pipe(out))
		live_fail("pipe: %s", strerror(errno));
	subject->pid = fork();
	if (subject->pid == 0) {
		while (read(in[0], &c, 1) == 1 && c != 'q') {
			if (change)
				change();
			if (write(out[1], "done\n", 5) != 5)
				_exit(1);
		}
		_exit(0);
	}
	subject->to = in[1];
	subject->from = out[0];
	return subject;
}

static void require_seen(void (*change)(void), const char *fact, bool strict)
{
	struct subject *subject = start_changing(change);
	struct state *before = state_take(subject->pid);
	const char *difference;

	difference = state_difference(before, state_take(subject->pid), strict);
	if (difference)
		live_fail("unchanged, and yet: %s", difference);
	subject_command(subject, 'g');
	difference = state_difference(before, state_take(subject->pid), strict);
	if (!difference)
		live_fail("the change was not seen (%s)", fact);
	require_text(difference, fact);
	subject_quit(subject);
}

static void a_changed_process_is_seen(void)
{
	require_seen(block_sigtrap, "SigBlk", false);
	require_seen(handle_sigtrap, "SigIgn", false);
	require_seen(map_code, "mapping", false);
	require_seen(open_descriptor, "descriptor", false);
	require_seen(leave_signal_pending, "SigPnd", false);
	require_seen(map_data, "mapping", true);
}

static bool is_stopped(void *context)
{
	pid_t pid = *(pid_t *)context;

	return thread_state(pid, pid) == 'T';
}

static void a_stopped_process_is_seen(void)
{
	struct subject *subject = start_changing(NULL);
	struct state *before = state_take(subject->pid);
	const char *difference;

	kill(subject->pid, SIGSTOP);
	require(live_wait(is_stopped, &subject->pid, 10000));
	difference = state_difference(before, state_take(subject->pid), false);
	require(difference);
	require_text(difference, "stopped");
	kill(subject->pid, SIGCONT);
	subject_quit(subject);
}

/* Puts one byte into the text that the process shares with its file. */
static void one_changed_byte_of_text_is_seen(void)
{
	struct subject *subject = start_changing(NULL);
	int mem = open(live_text("/proc/%d/mem", subject->pid), O_RDWR | O_CLOEXEC);
	unsigned char int3 = 0xcc, saved;
	off_t at = (off_t)(uintptr_t)&strfry;
	size_t bytes;

	text_require_intact(subject->pid);
	if (mem < 0)
		live_fail("/proc/%d/mem: %s", subject->pid, strerror(errno));
	require(pread(mem, &saved, 1, at) == 1 && saved != int3);
	if (pwrite(mem, &int3, 1, at) != 1)
		live_skip("this kernel does not let a process write to its child's text: %s", strerror(errno));
	require(text_difference(subject->pid, &bytes));
	require(pwrite(mem, &saved, 1, at) == 1);
	text_require_intact(subject->pid);
	close(mem);
	subject_quit(subject);
}

static struct counter *make_counter(void)
{
	const char *path = live_text("%s/counter", live_folder());
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	void *counter;

	if (fd < 0 || ftruncate(fd, sizeof(struct counter)))
		live_fail("%s: %s", path, strerror(errno));
	counter = mmap(NULL, sizeof(struct counter), PROT_READ, MAP_SHARED, fd, 0);
	if (counter == MAP_FAILED)
		live_fail("%s: %s", path, strerror(errno));
	close(fd);
	setenv("COUNTER_FILE", path, 1);
	setenv("LD_PRELOAD", live_text("%s/tests/live/counter.so", live_build()), 1);
	return counter;
}

static void require_agreement(const struct subject *hammer, const struct counter *then,
			      const struct counter *now, long before_bytes)
{
	long before = subject_tally(hammer, "before");

	require_equal(now->unknown, 0);
	require_equal(now->blocks - then->blocks, subject_tally(hammer, "blocks") - before);
	require_equal(now->bytes - then->bytes,
		      subject_tally(hammer, "bytes") - (before ? before_bytes : 0));
	require_equal(now->allocations - then->allocations, subject_tally(hammer, "allocations"));
	require_equal(now->frees - then->frees, subject_tally(hammer, "frees"));
}

/* The hammer's blocks from before have 1 to 200 bytes, in turn. */
static void the_hammer_counts_rightly(void)
{
	struct counter *counter = make_counter(), then;
	struct subject *hammer = victim_start("tests/victims/hammer", "--threads", "8", "--before", "1000",
					      "--ops", "5000", NULL);

	then = *counter;
	for (int i = 0; i < 5; i++) {
		subject_command(hammer, 'g');
		require_agreement(hammer, &then, counter, 1000 / 200 * (200 * 201 / 2));
	}
	subject_send(hammer, 'r');
	subject_command(hammer, 's');
	require_agreement(hammer, &then, counter, 1000 / 200 * (200 * 201 / 2));
	require_at_least(subject_tally(hammer, "allocations"), 100000);
	live_note("%ld allocations counted alike", subject_tally(hammer, "allocations"));
	subject_quit(hammer);
}

/* The blocks of other victims, whose rounds allocate nothing else. */
static void victims_count_their_blocks_rightly(void)
{
	static const char *const names[] = { "resizes", "recursion", "mainless", "forktree" };
	struct counter *counter = make_counter(), then;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct subject *victim = victim_start(live_text("tests/victims/%s", names[i]), NULL);

		then = *counter;
		for (int round = 0; round < 3; round++) {
			subject_command(victim, 'g');
			if (strcmp(names[i], "forktree") && strcmp(names[i], "mainless"))
				require_equal(counter->bytes - then.bytes, subject_tally(victim, "bytes"));
			require_equal(counter->unknown, 0);
		}
		subject_quit(victim);
	}
}

static void victims_find_nothing_wrong_untraced(void)
{
	struct subject *v;

	v = victim_start("tests/victims/forktree", NULL);
	subject_command(v, 'g');
	require_equal(subject_tally(v, "bad"), 0);
	subject_quit(v);
	v = victim_start("tests/victims/spawner", NULL);
	subject_command(v, 'g');
	require_equal(subject_tally(v, "bad"), 0);
	require_at_least(subject_tally(v, "spawned"), 15);
	subject_quit(v);
	v = victim_start("tests/victims/waiters", NULL);
	subject_command(v, 'w');
	require_equal(subject_tally(v, "broken"), 0);
	require_at_least(subject_tally(v, "woken"), 11);
	subject_quit(v);
	v = victim_start("tests/victims/registers", live_text("%s/tests/victims", live_build()), NULL);
	subject_command(v, 'g');
	require_equal(subject_tally(v, "wrong"), 0);
	require_at_least(subject_tally(v, "compared"), 100000);
	subject_quit(v);
}

/* A stray signal breaks those waits that no SA_RESTART protects: so the victim can tell. */
static void a_broken_wait_is_seen(void)
{
	struct subject *v = victim_start("tests/victims/waiters", NULL);

	subject_command(v, 'g');
	require_equal(subject_tally(v, "broken"), 0);
	kill(v->pid, SIGSTOP);
	require(live_wait(is_stopped, &v->pid, 10000));
	kill(v->pid, SIGCONT);
	/* epoll_wait and some others give EINTR after SIGSTOP and SIGCONT: signal(7) */
	subject_command(v, 'w');
	require_at_least(subject_tally(v, "broken"), 1);
	live_note("%ld waits were broken by a stop, the first one of %s", subject_tally(v, "broken"),
		  strstr(v->line, "first="));
	subject_quit(v);
}

static const struct live_case cases[] = {
	LIVE_CASE(a_changed_process_is_seen),
	LIVE_CASE(a_stopped_process_is_seen),
	LIVE_CASE(one_changed_byte_of_text_is_seen),
	LIVE_CASE(the_hammer_counts_rightly),
	LIVE_CASE(victims_count_their_blocks_rightly),
	LIVE_CASE(victims_find_nothing_wrong_untraced),
	LIVE_CASE(a_broken_wait_is_seen),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
