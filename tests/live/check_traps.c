/* SIGTRAPs that are the program's own: it gets each as it does untraced, whichever way it comes and whatever the program
 * has set for it, before the attach or after. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRAPS "tests/victims/traps"
#define BESIDE "tests/victims/beside"
#define TEXT_MAX 16384
#define ANSWER_MS 30000

/* What the victim is told, see traps.c; 'k': a SIGTRAP from outside; '+' and '-': the attach and the detach, which an
 * untraced run passes over.  The last one may be its end. */
static const char *const scripts[] = {
	/* handlers, set after the attach and before it */
	"+Pgi2rtkgbgi2rtk-gi2rtkq", "P+gi2rtkgbgi2rtk-gi2rtkq",
	"+pgi2rtk-gi2rtkq", "p+gi2rtk-gi2rtkq",
	"+Agi2rk-gi2rkq", "A+gi2rk-gi2rkq",
	"+Mgi2rtkgbgi2rtk-gi2rtkq", "M+gi2rtkgbgi2rtk-gi2rtkq",
	/* one that is used once: a second time is the end */
	"+Rgi-gi", "R+gi-gi", "+Rgrgr", "R+grgr", "R+g-gigi", "Rgi+gi", "R+gigRgi-gr",
	/* ignored: those that are sent; a trap of its own is the end */
	"+Igrkg-grki", "I+grkg-grk2", "+Igrkgi", "I+grkg2", "I+gbgrk-rkq", "+Igbgrk-rkq",
	/* the default */
	"+gi", "+g2", "+gr", "+gk", "+gt", "+g-i", "+g-k", "+gbr", "D+gr", "+Dgr", "P+Dgr", "+PgDgi", "P+gDg-r",
	/* what it was told to be the old one */
	"+Qgr", "+Qg-gr", "P+Qgirkg-girkq", "I+Qgrkg-grkq", "I+Qgi", "PQ+gir-Qgirq",
	/* both, with another tracing after */
	"P+gir-girI+grk-grkP+gi2rk-gi2rkq",
};
#define SCRIPTS (sizeof(scripts) / sizeof(scripts[0]))

struct outcome {
	int status;                      /* -1: it lives on where it should have ended */
	char said[TEXT_MAX];
};

/* Its answer is in `line`; false: there is none, it has ended. */
static bool answers(struct subject *victim, char command)
{
	struct pollfd pollfd = { .fd = victim->from, .events = POLLIN };
	size_t len = 0;

	if (write(victim->to, &command, 1) != 1)
		return false;
	while (len < sizeof(victim->line) - 1) {
		require_equal(poll(&pollfd, 1, ANSWER_MS), 1);
		if (read(victim->from, victim->line + len, 1) != 1)
			return false;
		if (victim->line[len] == '\n')
			break;
		len++;
	}
	victim->line[len] = '\0';
	return true;
}

static struct outcome play(struct tool *tool, const char *script)
{
	struct subject *victim = victim_start(TRAPS, NULL);
	struct outcome outcome = { 0 };
	size_t len = 0;
	const char *p;

	for (p = script; *p && *p != 'q'; p++) {
		if (*p == '+' || *p == '-') {
			if (tool && *p == '+')
				tool_attach(tool, victim->pid);
			else if (tool)
				tool_detach(tool, victim->pid);
			continue;
		}
		if (*p == 'k')
			kill(victim->pid, SIGTRAP);
		if (!answers(victim, *p == 'k' ? 'x' : *p))
			break;
		len += (size_t)snprintf(outcome.said + len, sizeof(outcome.said) - len, "%c: %s\n", *p, victim->line);
		require(len < sizeof(outcome.said));
	}
	if (strchr(script, 'q') && write(victim->to, "q", 1) != 1)
		live_note("%s: it has ended before", script);
	if (!*p && !strchr(script, 'q')) {
		subject_kill(victim);
		outcome.status = -1;
		return outcome;
	}
	outcome.status = subject_wait(victim);
	return outcome;
}

static void every_sigtrap_is_the_programs_as_untraced(void)
{
	struct tool *tool = tool_start();
	unsigned wrong = 0, survivors = 0, plays = live_rounds(1, 20) * SCRIPTS;

	signal(SIGPIPE, SIG_IGN);
	for (size_t n = 0; n < plays; n++) {
		static struct outcome untraced, traced;
		size_t i = n % SCRIPTS;

		untraced = play(NULL, scripts[i]);
		traced = play(tool, scripts[i]);
		require(strchr(scripts[i], 'q') ? untraced.status == 0 : WIFSIGNALED(untraced.status) && WTERMSIG(untraced.status) == SIGTRAP);
		survivors += traced.status == 0;
		if (traced.status == untraced.status && strcmp(traced.said, untraced.said) == 0)
			continue;
		live_note("%s: wait status 0x%x, untraced 0x%x; it says\n%suntraced\n%s", scripts[i], (unsigned)traced.status,
			  (unsigned)untraced.status, traced.said, untraced.said);
		wrong++;
	}
	live_survey("SIGTRAPs of its own", plays, 0, plays, plays - wrong);
	require_at_least(survivors, 10);
	require_equal(wrong, 0);
}

/* Without ptrace it would see the steps of our code as well. */
static void attach_with(struct tool *tool, pid_t pid, const char *engine)
{
	tool_out(tool, "attach", pid_text(pid), "--engine", engine, "--hold", NULL);
}

/* Code that a jump leads to runs at other addresses: there it is the number of steps alone. */
static const char *steps_of(struct subject *victim, bool by_ring)
{
	const char *line = live_text("%s", subject_command(victim, 's')), *hash = strstr(line, " hash=");

	require(hash != NULL);
	return by_ring ? live_text("%.*s", (int)(hash - line), line) : line;
}

/* By the trap flag: as many steps over the same addresses, with our int3s or jumps in the way and without. */
static void step_through_an_allocation(const char *engine)
{
	bool by_ring = strcmp(engine, "ring") == 0;
	struct tool *tool = tool_start();

	for (int first = 0; first < 2; first++) {
		struct subject *victim = victim_start(TRAPS, NULL);
		const char *untraced;
		long steps;

		if (first)
			subject_command(victim, 'P');
		else
			attach_with(tool, victim->pid, engine);
		if (!first)
			subject_command(victim, 'P');
		if (!first)
			tool_detach(tool, victim->pid);
		subject_command(victim, 's');
		untraced = steps_of(victim, by_ring);
		steps = subject_tally(victim, "steps");
		require_at_least(steps, 20);
		attach_with(tool, victim->pid, engine);
		for (int i = 0; i < 3; i++)
			require_equal(strcmp(steps_of(victim, by_ring), untraced), 0);
		require_nothing_unknown(tool_status(tool, victim->pid), 0);
		require_equal(json_number(tool_status(tool, victim->pid), "allocations"), 3);
		tool_detach(tool, victim->pid);
		require_equal(strcmp(steps_of(victim, by_ring), untraced), 0);
		live_note("%ld steps each time", steps);
		require_unharmed(victim->pid, NULL);
		subject_quit(victim);
	}
}

static void a_program_that_steps_itself_sees_the_same_steps(void)
{
	step_through_an_allocation("int3");
}

static void so_it_does_with_a_ring(void)
{
	step_through_an_allocation("ring");
}

static void int3s_beside_ours_are_told_from_ours(void)
{
	struct tool *tool = tool_start();
	struct subject *victim = victim_start(BESIDE, NULL);
	unsigned rounds = live_rounds(50, 250);

	subject_command(victim, 'g');
	tool_attach(tool, victim->pid);
	for (unsigned i = 0; i < rounds; i++)
		subject_command(victim, 'g');
	require_equal(subject_tally(victim, "caught"), 8 * (rounds + 1L));
	require_nothing_unknown(tool_status(tool, victim->pid), 0);
	require_row(tool_stats(tool, pid_text(victim->pid)), BESIDE ".c", "/* kept block */", 26LL * rounds, rounds);
	tool_detach(tool, victim->pid);
	subject_command(victim, 'g');
	require_equal(subject_tally(victim, "caught"), 8 * (rounds + 2L));
	require_unharmed(victim->pid, NULL);
	subject_quit(victim);
}

static const struct live_case cases[] = {
	LIVE_CASE(every_sigtrap_is_the_programs_as_untraced),
	LIVE_CASE(a_program_that_steps_itself_sees_the_same_steps),
	LIVE_CASE(so_it_does_with_a_ring),
	LIVE_CASE(int3s_beside_ours_are_told_from_ours),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
