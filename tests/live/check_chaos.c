/* Chaos: tracer, daemon, healer or all of them are killed, stopped or told to end, or asked for something else, at a random
 * moment of a phase, while the target is at work; and the target says itself, afterwards, whether anything went wrong.
 *
 * Each round has a daemon and a target of its own and is drawn from one number: LIVE_CHAOS=NUMBER plays that round
 * again, as it was drawn.  Moments remain a matter of the machine.  LIVE_CHAOS_KILLS=N: so many kills (2000 in the long
 * form), and each phase has its part of them.  LIVE_CHAOS_PHASE=attach, LIVE_CHAOS_KIND='1 thread': such rounds alone;
 * LIVE_CHAOS_TIMES=1: how long each took. */
#include "fleet.h"
#include "live.h"
#include "rounds.h"
#include "state.h"
#include "tool.h"

#include "base/clock.h"
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 16
#define KILLS_LONG 2000
#define KILLS_EACH_PHASE 40    /* one in so many of them, at least, in each phase */
#define FREE_MS 15000          /* a tracer that is stopped counts a second of it, and one whose daemon is, ten */
#define CLIENT_MS 60000
#define CLIENTS 2
#define BROKEN_MOST 50         /* in one of so many rounds */

static uint64_t drawn;         /* this round's source of numbers */

static uint64_t draw(uint64_t below)
{
	drawn ^= drawn >> 12;
	drawn ^= drawn << 25;
	drawn ^= drawn >> 27;
	return (drawn * 0x2545f4914f6cdd1dULL >> 16) % below;
}

/* What a round tells beside its outcome. */
struct notes {
	bool unsafe;                   /* crash_safe was false, or the page on safety excludes it */
	char reason[256];
	unsigned descendants;          /* that were looked at */
};

static struct notes *notes;

#define end_round(outcome, ...) round_end(&chaos_outcomes, outcome, __VA_ARGS__)

/* --- what may be left --- */

/* Of one that has ended there is none.  It may end or execute a program at any moment, so another process looks, which may
 * fail then. */
static bool text_is_intact(void *context)
{
	pid_t of = *(pid_t *)context, pid;
	char state = proc_stat_state(live_text("/proc/%d/stat", of));
	int status;

	if (state == '\0' || state == 'Z' || state == 'X')
		return true;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		size_t bytes;

		dup2(null, STDOUT_FILENO);
		_exit(text_difference(of, &bytes) == NULL ? 0 : 1);
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static const char *text_left(pid_t pid)
{
	size_t bytes;

	return text_is_intact(&pid) ? NULL : text_difference(pid, &bytes);
}

static bool same_program(pid_t pid, pid_t other)
{
	struct stat a, b;

	return stat(live_text("/proc/%d/exe", pid), &a) == 0 && stat(live_text("/proc/%d/exe", other), &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Who lost its parent is this process's child. */
static bool descends_from(pid_t pid, pid_t ancestor)
{
	pid_t parent = pid;

	while (parent > 1 && parent != ancestor && parent != getpid())
		parent = proc_parent(parent);
	return pid != ancestor && (parent == ancestor || (parent == getpid() && same_program(pid, ancestor)));
}

struct descendant {
	pid_t pid;
	bool may_catch;                /* SIGTRAP */
};

#define TRAP_BIT (1LL << (SIGTRAP - 1))

static bool is_clean_or_gone(void *context)
{
	struct descendant *d = context;
	long long caught = status_number(d->pid, "SigCgt", 16);

	if (!text_is_intact(&d->pid))
		return false;
	return status_number(d->pid, "TracerPid", 10) <= 0 && (d->may_catch || caught < 0 || !(caught & TRAP_BIT));
}

static void require_clean_descendants(pid_t target, bool may_catch)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		struct descendant d = { (pid_t)atoi(entry->d_name), may_catch };

		if (d.pid <= 0 || !descends_from(d.pid, target))
			continue;
		notes->descendants++;
		if (!live_wait(is_clean_or_gone, &d, FREE_MS))
			end_round(LEFTOVERS, "descendant %d: traced by %lld, SigCgt %llx, text: %s", d.pid,
				  status_number(d.pid, "TracerPid", 10), status_number(d.pid, "SigCgt", 16),
				  text_is_intact(&d.pid) ? "intact" : text_left(d.pid));
	}
	if (proc)
		closedir(proc);
}

static void require_clean(pid_t pid, const struct kind *kind, const struct outline *before)
{
	const char *difference;

	fleet_require_alive("before it was looked at");
	if (!live_wait(text_is_intact, &pid, FREE_MS) && (difference = text_left(pid)))
		end_round(LEFTOVERS, "text: %s", difference);
	if (!live_wait(state_is_untraced, &pid, FREE_MS))
		end_round(LEFTOVERS, "it is still traced");
	difference = kind->other_actions ? NULL : outline_wait(pid, before, true, FREE_MS);
	fleet_require_alive("while it was looked at");
	if (difference)
		end_round(LEFTOVERS, "%s", difference);
	require_clean_descendants(pid, kind->other_actions || before->caught & TRAP_BIT);
}

/* --- phases --- */

enum phase { IN_ATTACH, IN_TRACING, IN_SNAPSHOT, IN_DETACH, IN_HEALING, PHASES };

static const char *const phase_names[PHASES] = { "attach", "tracing", "snapshot", "detach", "healing" };
/* Of the phase, in microseconds, within which the moment is drawn. */
static const unsigned phase_us[PHASES] = { 8000, 30000, 4000, 8000, 6000 };

static void note_safety(struct tool *tool, pid_t pid)
{
	struct tool_run run = tool_try(tool, "status", pid_text(pid), "--json", NULL);
	json_t *status = run.status == 0 ? json_loads(run.out, 0, NULL) : NULL;

	if (!status || json_is_true(json_object_get(status, "crash_safe")))
		return;
	notes->unsafe = true;
	snprintf(notes->reason, sizeof(notes->reason), "crash_safe is false: %s", json_text(status, "crash_safe_reason"));
}

static pid_t begin_phase(struct tool *tool, pid_t pid, enum phase phase)
{
	pid_t client = 0;

	/* Refused is one that waits in vfork. */
	if (phase != IN_ATTACH && tool_try(tool, "attach", pid_text(pid), NULL).status != 0)
		end_round(MISSED, "it could not be attached to");
	if (phase != IN_ATTACH)
		note_safety(tool, pid);
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

struct search {
	struct tool *tool;
	bool heals;
	pid_t found;
};

static bool find_child(void *context)
{
	struct search *search = context;

	search->found = tool_daemons_child(search->tool, search->heals);
	return search->found != 0;
}

static bool hit(pid_t pid, int sig)
{
	return pid > 0 && kill(pid, sig) == 0;
}

/* Who traces, or heals: whom the deed is done to. */
static pid_t find_tracer(struct tool *tool, pid_t pid, enum phase phase)
{
	pid_t tracer = tool_find_tracer(pid);
	struct search search = { .tool = tool, .heals = phase == IN_HEALING };

	if (phase == IN_HEALING)
		hit(tracer, SIGKILL);
	else if (tracer > 0)
		return tracer;
	live_wait(find_child, &search, 200);
	return search.found;
}

/* --- deeds --- */

enum whom { TRACER, DAEMON, BOTH, CGROUP, CLIENT };

#define OOM_KILL (-SIGKILL)

/* A healer is a tracer here. */
static const struct deed {
	const char *name;
	enum whom whom;
	int sig;
	unsigned weight;
	const char *client;            /* asks for this */
} deeds[] = {
	{ "SIGKILL to the tracer", TRACER, SIGKILL, 4, NULL },
	{ "SIGSEGV to the tracer", TRACER, SIGSEGV, 2, NULL },
	{ "an OOM kill of the tracer", TRACER, OOM_KILL, 2, NULL },
	{ "SIGKILL to the daemon", DAEMON, SIGKILL, 3, NULL },
	{ "an OOM kill of the daemon", DAEMON, OOM_KILL, 1, NULL },
	{ "SIGKILL to both", BOTH, SIGKILL, 4, NULL },
	{ "SIGKILL to the whole cgroup", CGROUP, SIGKILL, 4, NULL },
	{ "SIGSTOP to the tracer", TRACER, SIGSTOP, 1, NULL },
	{ "SIGSTOP to the daemon", DAEMON, SIGSTOP, 1, NULL },
	{ "SIGTERM to the tracer", TRACER, SIGTERM, 1, NULL },
	{ "SIGINT to the tracer", TRACER, SIGINT, 1, NULL },
	{ "SIGTERM to the daemon", DAEMON, SIGTERM, 1, NULL },
	{ "SIGINT to the daemon", DAEMON, SIGINT, 1, NULL },
	{ "an attach", CLIENT, 0, 1, "attach" },
	{ "a snapshot", CLIENT, 0, 1, "snapshot" },
	{ "a detach", CLIENT, 0, 1, "detach" },
};

#define DEEDS (sizeof(deeds) / sizeof(deeds[0]))

static bool kills(const struct deed *deed)
{
	return deed->sig == SIGKILL || deed->sig == SIGSEGV || deed->sig == OOM_KILL;
}

static const struct deed *draw_deed(void)
{
	unsigned sum = 0;
	size_t i = 0;
	uint64_t at;

	for (size_t k = 0; k < DEEDS; k++)
		sum += deeds[k].weight;
	for (at = draw(sum); at >= deeds[i].weight; i++)
		at -= deeds[i].weight;
	return &deeds[i];
}

/* What the kernel's OOM killer does: SIGKILL, and the memory is taken while the process is still on its way out. */
static bool kill_for_memory(pid_t pid)
{
	int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	bool done = pidfd >= 0 && syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0;

	if (done)
		syscall(SYS_process_mrelease, pidfd, 0);
	if (pidfd >= 0)
		close(pidfd);
	return done;
}

static const char *cgroup;             /* the daemon's and its children's; NULL: there is none */

static bool write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool done = f && fputs(text, f) >= 0;

	return f && fclose(f) == 0 && done;
}

/* Where cgroups cannot be made, its members are killed one after the other. */
static void make_cgroup(struct tool *tool)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL };

	for (size_t i = 0; roots[i] && !cgroup; i++) {
		const char *path = live_text("%s/allocwatch-chaos-%d", roots[i], getpid());

		if (access(live_text("%s/cgroup.controllers", roots[i]), F_OK) < 0 || mkdir(path, 0755) < 0)
			continue;
		if (access(live_text("%s/cgroup.kill", path), W_OK) == 0 &&
		    write_text(live_text("%s/cgroup.procs", path), pid_text(tool_daemon(tool))))
			cgroup = path;
		else
			rmdir(path);
	}
}

static bool cgroup_is_removed(void *context)
{
	(void)context;
	return rmdir(cgroup) == 0;
}

static void remove_cgroup(void)
{
	if (cgroup && !live_wait(cgroup_is_removed, NULL, FREE_MS))
		live_note("%s: %s", cgroup, strerror(errno));
	cgroup = NULL;
}

static void kill_daemons_children(pid_t daemon)
{
	FILE *children = fopen(live_text("/proc/%d/task/%d/children", daemon, daemon), "r");
	pid_t pid;

	while (children && fscanf(children, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (children)
		fclose(children);
}

static void end_daemon(struct tool *tool, int sig)
{
	if (sig == OOM_KILL)
		kill_for_memory(tool_daemon(tool));
	else
		kill(tool_daemon(tool), sig);
	waitpid(tool_daemon(tool), NULL, 0);
}

static void kill_cgroup(struct tool *tool)
{
	pid_t daemon = tool_daemon(tool);

	if (cgroup && write_text(live_text("%s/cgroup.kill", cgroup), "1")) {
		waitpid(daemon, NULL, 0);
		remove_cgroup();
		return;
	}
	kill(daemon, SIGSTOP);         /* else it heals first */
	kill_daemons_children(daemon);
	end_daemon(tool, SIGKILL);
}

/* It goes on after a moment, or hangs until its tracer has left. */
static void stop_daemon(struct tool *tool, pid_t pid)
{
	kill(tool_daemon(tool), SIGSTOP);
	if (draw(4) > 0) {
		live_let_pass(draw(1000) * NSEC_PER_MSEC);
	} else if (!live_wait(state_is_untraced, &pid, FREE_MS)) {
		end_round(LEFTOVERS, "its tracer did not leave when the daemon hung");
	}
	kill(tool_daemon(tool), SIGCONT);
}

/* False when there was nobody to do it to. */
static bool do_deed(struct tool *tool, const struct deed *deed, pid_t pid, pid_t tracer, pid_t *ret_client)
{
	switch (deed->whom) {
	case TRACER:
		return deed->sig == OOM_KILL ? kill_for_memory(tracer) : hit(tracer, deed->sig);
	case BOTH:
		kill(tool_daemon(tool), SIGSTOP);      /* else it heals first */
		hit(tracer, SIGKILL);
		end_daemon(tool, SIGKILL);
		return tracer > 0;
	case CGROUP:
		kill_cgroup(tool);
		return true;
	case CLIENT:
		*ret_client = tool_begin(tool, deed->client, pid_text(pid), NULL);
		return true;
	case DAEMON:
		if (deed->sig == SIGSTOP)
			stop_daemon(tool, pid);
		else
			end_daemon(tool, deed->sig);
	}
	return true;
}

static bool daemon_dies(const struct deed *deed)
{
	return deed->whom == BOTH || deed->whom == CGROUP || (deed->whom == DAEMON && deed->sig != SIGSTOP);
}

static bool is_over(void *context)
{
	return waitpid(*(pid_t *)context, NULL, WNOHANG) != 0;
}

/* With ptrace or without; what it has left is healed. */
static bool has_no_tracer(void *context)
{
	return tool_find_tracer(*(pid_t *)context) <= 0;
}

/* What a person would do afterwards: let go what is still traced, and heal where no daemon was left to. */
static void put_in_order(struct tool *tool, pid_t pid, bool daemon_lives, pid_t clients[CLIENTS])
{
	for (size_t i = 0; i < CLIENTS; i++) {
		if (clients[i] > 0 && !live_wait(is_over, &clients[i], CLIENT_MS))
			end_round(DEAD, "the client got no answer");
	}
	if (daemon_lives) {
		if (tool_lists(tool, pid))
			tool_try(tool, "detach", pid_text(pid), NULL);
		/* One that was lost is listed until it is detached from; healing may still be under way, or have
		 * been killed by us. */
		live_wait(state_is_untraced, &pid, FREE_MS);
		end_daemon(tool, SIGTERM);
	} else if (!live_wait(has_no_tracer, &pid, FREE_MS)) {
		end_round(LEFTOVERS, "its tracer did not leave when the daemon had died");
	}
	if (!text_is_intact(&pid))
		tool_heal(pid_text(pid));
}

static void stop_and_go_on(pid_t pid)
{
	kill(pid, SIGSTOP);
	live_let_pass(draw(2000) * NSEC_PER_USEC);
	kill(pid, SIGCONT);
}

/* --- rounds --- */

struct round {
	enum phase phase;
	const struct deed *deed;
	const struct kind *kind;
	unsigned number;               /* of those that were played */
};

static void prepare(void)
{
	const struct rlimit no_core = { 0, 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void play(const void *context)
{
	const struct round *round = context;
	const struct kind *kind = round->kind;
	pid_t clients[CLIENTS] = { 0 }, pid, tracer;
	struct outline before;
	bool from_outside, done;
	struct tool *tool;

	prepare();
	tool = tool_start_named(live_text("round-%u", round->number));
	if (round->deed->whom == CGROUP)
		make_cgroup(tool);
	pid = fleet_start(kind);
	before = outline_take(pid);
	from_outside = draw(4) == 0 && !kind->unstoppable;
	fleet_work(kind);
	clients[0] = begin_phase(tool, pid, round->phase);
	fleet_work(kind);
	if (kind->filtered && round->phase != IN_TRACING && round->phase != IN_SNAPSHOT) {
		notes->unsafe = true;
		strcpy(notes->reason, "a system call is made in a process with a filter that kills");
	}
	tracer = find_tracer(tool, pid, round->phase);
	if (from_outside)
		stop_and_go_on(pid);
	live_let_pass(draw(phase_us[round->phase]) * NSEC_PER_USEC);
	done = do_deed(tool, round->deed, pid, tracer, &clients[1]);
	fleet_work(kind);
	if (from_outside)
		stop_and_go_on(pid);
	put_in_order(tool, pid, !daemon_dies(round->deed), clients);
	require_clean(pid, kind, &before);
	fleet_judge(kind);
	round_end(&chaos_outcomes, done ? LIVED : MISSED, NULL);
}

static void draw_round(uint64_t number, struct round *ret)
{
	drawn = number | 1;
	ret->phase = (enum phase)draw(PHASES);
	ret->deed = draw_deed();
	ret->kind = &fleet[draw(fleet_count)];
}

/* --- counts --- */

struct counts {
	unsigned outcomes[OUTCOMES], kills, unsafe, descendants;
};

struct table {
	struct counts phases[PHASES];
	unsigned *kinds;               /* rounds of each */
	unsigned deeds[DEEDS];
	unsigned rounds, harmed, broken;
};

static unsigned deeds_in(const struct counts *counts)
{
	unsigned sum = 0;

	for (unsigned outcome = 0; outcome < OUTCOMES; outcome++)
		sum += outcome == MISSED ? 0 : counts->outcomes[outcome];
	return sum;
}

static void count(struct table *table, const struct round *round, enum outcome outcome)
{
	struct counts *counts = &table->phases[round->phase];

	table->rounds++;
	counts->outcomes[outcome]++;
	table->broken += outcome == BROKEN_OFF;
	table->harmed += outcome > UNSAFE;
	if (outcome == MISSED)
		return;
	counts->kills += kills(round->deed);
	counts->unsafe += notes->unsafe;
	counts->descendants += notes->descendants;
	table->deeds[round->deed - deeds]++;
	table->kinds[round->kind - fleet]++;
}

static void play_number(struct table *table, uint64_t number)
{
	struct round round;
	enum outcome outcome;
	uint64_t began_ns = clock_monotonic_ns();

	memset(notes, 0, sizeof(*notes));
	draw_round(number, &round);
	round.number = table->rounds;
	outcome = (enum outcome)round_play(&chaos_outcomes, play, &round);
	if (outcome == DEAD && notes->unsafe)
		outcome = UNSAFE;
	count(table, &round, outcome);
	if (getenv("LIVE_CHAOS_TIMES"))
		live_note("%6.1f s: %s in the %s of '%s'", (double)(clock_monotonic_ns() - began_ns) / NSEC_PER_SEC,
			  round.deed->name, phase_names[round.phase], round.kind->name);
	if (outcome > MISSED)
		live_note("%s: %s in the %s of '%s'%s%s; LIVE_CHAOS=0x%llx plays it again",
			  chaos_outcomes.names[outcome], round.deed->name, phase_names[round.phase], round.kind->name,
			  notes->unsafe ? "; " : "", notes->reason, (unsigned long long)number);
}

/* One that is asked for. */
static uint64_t draw_number(const char *phase, const char *kind)
{
	struct round round;
	uint64_t number;

	do {
		number = live_random(1ULL << 47);
		draw_round(number, &round);
	} while ((phase && strcmp(phase_names[round.phase], phase) != 0) || (kind && strcmp(round.kind->name, kind) != 0));
	return number;
}

static void require_names(const char *phase, const char *kind)
{
	size_t p = 0, k = 0;

	while (phase && p < PHASES && strcmp(phase_names[p], phase) != 0)
		p++;
	while (kind && k < fleet_count && strcmp(fleet[k].name, kind) != 0)
		k++;
	if (p == PHASES || k == fleet_count)
		live_fail("there is no phase, or no kind, of that name");
}

static bool has_kills(const struct table *table, unsigned wanted, bool everywhere)
{
	unsigned sum = 0, least = wanted;

	for (unsigned phase = 0; phase < PHASES; phase++) {
		sum += table->phases[phase].kills;
		if (table->phases[phase].kills < least)
			least = table->phases[phase].kills;
	}
	return sum >= wanted && (!everywhere || least >= wanted / KILLS_EACH_PHASE);
}

static void tell_table(const struct table *table)
{
	struct counts all = { .kills = 0 };

	printf("# %-10s %7s %7s %7s %7s %7s %7s %7s %7s %7s %7s\n", "phase", "deeds", "kills", "lived", "waits", "left",
	       "corrupt", "dead", "unsafe", "died", "descend");
	for (unsigned phase = 0; phase <= PHASES; phase++) {
		const struct counts *c = phase < PHASES ? &table->phases[phase] : &all;
		const unsigned *o = c->outcomes;

		printf("# %-10s %7u %7u %7u %7u %7u %7u %7u %7u %7u %7u\n", phase < PHASES ? phase_names[phase] : "all",
		       deeds_in(c), c->kills, o[LIVED], o[BROKEN_OFF], o[LEFTOVERS], o[CORRUPT], o[DEAD], c->unsafe,
		       o[UNSAFE], c->descendants);
		for (unsigned i = 0; i < OUTCOMES; i++)
			all.outcomes[i] += o[i];
		all.kills += c->kills;
		all.unsafe += c->unsafe;
		all.descendants += c->descendants;
	}
	for (size_t i = 0; i < DEEDS; i++)
		printf("# %5u  %s\n", table->deeds[i], deeds[i].name);
	for (size_t i = 0; i < fleet_count; i++)
		printf("# %5u  %s\n", table->kinds[i], fleet[i].name);
}

static void survey(const struct table *table)
{
	for (unsigned phase = 0; phase < PHASES; phase++) {
		const struct counts *c = &table->phases[phase];
		const unsigned *o = c->outcomes;

		/* Who died where the page on safety says that it may is in the table above, and not among those that have to live. */
		live_survey(live_text("chaos in the %s", phase_names[phase]), deeds_in(c) + o[MISSED], c->kills,
			    deeds_in(c) - o[UNSAFE], deeds_in(c) - o[UNSAFE] - o[LEFTOVERS] - o[CORRUPT] - o[DEAD]);
	}
}

static void targets_outlive_whatever_happens_to_who_traces_them(void)
{
	const char *replay = getenv("LIVE_CHAOS"), *wanted_text = getenv("LIVE_CHAOS_KILLS");
	const char *phase = getenv("LIVE_CHAOS_PHASE"), *kind = getenv("LIVE_CHAOS_KIND");
	unsigned wanted = wanted_text ? (unsigned)atoi(wanted_text) : live_rounds(0, KILLS_LONG);
	struct table table = { .kinds = calloc(fleet_count, sizeof(unsigned)) };

	notes = mmap(NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (notes == MAP_FAILED || !table.kinds)
		live_fail("no memory");
	require_names(phase, kind);
	if (replay)
		play_number(&table, strtoull(replay, NULL, 0));
	else
		while (wanted > 0 ? !has_kills(&table, wanted, !phase) : table.rounds < ROUNDS)
			play_number(&table, draw_number(phase, kind));
	tell_table(&table);
	survey(&table);
	require_equal(table.harmed, 0);
	if (table.broken > table.rounds / BROKEN_MOST + 1)
		live_fail("in %u of %u rounds waits were broken off", table.broken, table.rounds);
}

static const struct live_case cases[] = {
	LIVE_CASE(targets_outlive_whatever_happens_to_who_traces_them),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
