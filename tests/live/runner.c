#include "live.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS_SKIP 77
#define STAT_MAX 4096
#define POLL_MS 2
#define FEWEST_COUNTED 10       /* rounds; less is no count, but a choice between the two forms */

static char folder[64];
static const char *case_name;
static char skip_reason_path[128];
static uint64_t random_state;

void live_note(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

void live_fail_at(const char *file, int line, const char *format, ...)
{
	va_list args;

	printf("# %s:%d: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(EXIT_FAILURE);
}

/* The reason reaches the runner by a file in the case's folder. */
void live_skip(const char *format, ...)
{
	FILE *f = fopen(skip_reason_path, "w");
	va_list args;

	if (!f)
		live_fail("%s: %s", skip_reason_path, strerror(errno));
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	fclose(f);
	_exit(STATUS_SKIP);
}

void live_require_equal(const char *file, int line, const char *is_text, long long is,
			const char *should_text, long long should)
{
	if (is != should)
		live_fail_at(file, line, "%s is %lld, should be %lld (%s)", is_text, is, should, should_text);
}

void live_require_at_least(const char *file, int line, const char *is_text, long long is,
			   const char *least_text, long long least)
{
	if (is < least)
		live_fail_at(file, line, "%s is %lld, should be at least %lld (%s)", is_text, is, least,
			     least_text);
}

void live_require_text(const char *file, int line, const char *text, const char *part)
{
	if (!strstr(text, part))
		live_fail_at(file, line, "'%s' is missing in: %s", part, text);
}

const char *live_case_name(void)
{
	return case_name;
}

const char *live_folder(void)
{
	return folder;
}

const char *live_text(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		live_fail("out of memory");
	va_end(args);
	return text;
}

const char *live_build(void)
{
	static char here[4096];
	const char *build = getenv("ALLOCWATCH_BUILD");

	if (build)
		return build;
	if (!getcwd(here, sizeof(here)))
		live_fail("getcwd: %s", strerror(errno));
	return here;
}

const char *live_source(void)
{
	const char *source = getenv("srcdir") ? getenv("srcdir") : ".";

	if (access(live_text("%s/tests/live/runner.c", source), F_OK) < 0)
		live_fail("'%s' is not the source tree: srcdir must name it", source);
	return source;
}

static bool is_torture(void)
{
	return getenv("LIVE_TORTURE") != NULL;
}

static int deadline_s(void)
{
	const char *given = getenv("LIVE_DEADLINE");

	if (given)
		return atoi(given);
	return is_torture() ? LIVE_TORTURE_DEADLINE_S : LIVE_DEADLINE_S;
}

unsigned int live_rounds(unsigned int normal, unsigned int torture)
{
	const char *given = getenv("LIVE_SHARE");
	int parts = given ? atoi(given) : 1;
	bool is_choice = torture < FEWEST_COUNTED || torture < normal;

	if (!is_torture())
		return normal;
	if (parts <= 1 || is_choice)
		return torture;
	return torture / (unsigned int)parts > normal ? torture / (unsigned int)parts : normal;
}

void live_survey(const char *kind, unsigned int cycles, unsigned int kills, unsigned int targets,
		 unsigned int survivors)
{
	printf("SURVEY: %u %u %u %u %s\n", cycles, kills, targets, survivors, kind);
	fflush(stdout);
}

bool live_wait(bool (*done)(void *context), void *context, int timeout_ms)
{
	uint64_t deadline = clock_monotonic_ns() + (uint64_t)timeout_ms * NSEC_PER_MSEC;

	while (!done(context)) {
		if (clock_passed(deadline))
			return false;
		poll(NULL, 0, POLL_MS);
	}
	return true;
}

void live_let_pass(uint64_t ns)
{
	const struct timespec pause = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	ppoll(NULL, 0, &pause, NULL);
}

static void seed_random(void)
{
	const char *given = getenv("LIVE_SEED");

	random_state = given ? strtoull(given, NULL, 0) : clock_realtime_ns() | 1;
}

uint64_t live_random(uint64_t below)
{
	static bool told;

	if (!told)
		live_note("seed: LIVE_SEED=%llu", (unsigned long long)random_state);
	told = true;
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (random_state * 0x2545f4914f6cdd1dULL >> 16) % below;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static void make_folder(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%.30s/awlive-XXXXXX", tmp && strlen(tmp) <= 30 ? tmp : "/tmp");
	if (!mkdtemp(folder) || chmod(folder, 0755)) {
		fprintf(stderr, "%s: %s\n", folder, strerror(errno));
		exit(EXIT_FAILURE);
	}
	snprintf(skip_reason_path, sizeof(skip_reason_path), "%s/skipped", folder);
}

static void remove_folder(void)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* This process is a subreaper: whoever lost its parent is a child of this one by now. */
static bool kill_children(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid > 0 && proc_parent(pid) == getpid()) {
			kill(pid, SIGKILL);
			found = true;
		}
	}
	if (proc)
		closedir(proc);
	return found;
}

void live_end_children(void)
{
	uint64_t deadline = clock_monotonic_ns() + 20 * NSEC_PER_SEC;

	while (kill_children() && !clock_passed(deadline)) {
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		poll(NULL, 0, POLL_MS);
	}
	while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
		;
}

/* The case's wait status; false when its time was up. */
static bool wait_for_case(pid_t pid, int *ret_status)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd pollfd = { .fd = pidfd, .events = POLLIN };
	bool ended = poll(&pollfd, 1, deadline_s() * 1000) == 1;

	if (!ended)
		kill(pid, SIGKILL);
	waitpid(pid, ret_status, 0);
	fd_close(&pidfd);
	return ended;
}

enum verdict { PASSED, FAILED, SKIPPED };

/* Ignored by who started this, in the background or under nohup: a shell could not trap them then. */
static void heed_signals(void)
{
	struct sigaction action;

	for (int sig = 1; sig < NSIG; sig++) {
		if (sigaction(sig, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			signal(sig, SIG_DFL);
	}
}

static void run_child(const struct live_case *c)
{
	heed_signals();
	signal(SIGPIPE, SIG_IGN);
	c->run();
	fflush(stdout);
	_exit(EXIT_SUCCESS);
}

static enum verdict judge(const char *name, bool ended, int status, double seconds)
{
	char *reason = NULL;

	if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		printf("PASS: %s (%.1f s)\n", name, seconds);
		return PASSED;
	}
	if (ended && WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SKIP &&
	    file_read_text(skip_reason_path, STAT_MAX, &reason, NULL) == 0) {
		printf("SKIP: %s: %s\n", name, reason);
		free(reason);
		return SKIPPED;
	}
	if (!ended)
		printf("FAIL: %s (not done in %d s)\n", name, deadline_s());
	else if (WIFSIGNALED(status))
		printf("FAIL: %s (the test itself died by signal %d)\n", name, WTERMSIG(status));
	else
		printf("FAIL: %s (%.1f s)\n", name, seconds);
	return FAILED;
}

static enum verdict run_case(const struct live_case *c)
{
	uint64_t begun = clock_monotonic_ns();
	enum verdict verdict;
	bool ended;
	int status;
	pid_t pid;

	make_folder();
	case_name = c->name;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		run_child(c);
	if (pid < 0) {
		perror("fork");
		exit(EXIT_FAILURE);
	}
	ended = wait_for_case(pid, &status);
	live_end_children();
	verdict = judge(c->name, ended, status, (double)(clock_monotonic_ns() - begun) / NSEC_PER_SEC);
	remove_folder();
	fflush(stdout);
	return verdict;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], name))
			return true;
	}
	return argc == 1;
}

int live_main(int argc, char **argv, const struct live_case *cases, size_t count)
{
	size_t ran = 0, verdicts[3] = { 0 };

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (size_t i = 0; i < count; i++)
			puts(cases[i].name);
		return EXIT_SUCCESS;
	}
	seed_random();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (size_t i = 0; i < count; i++) {
		if (!is_wanted(cases[i].name, argc, argv))
			continue;
		verdicts[run_case(&cases[i])]++;
		ran++;
	}
	if (ran == 0)
		printf("FAIL: no case ran\n");
	if (ran == 0 || verdicts[FAILED])
		return EXIT_FAILURE;
	return verdicts[SKIPPED] == ran ? STATUS_SKIP : EXIT_SUCCESS;
}
