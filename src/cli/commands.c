#include "cli/command.h"

#include <string.h>

#define TRACING (OPTION(ALLOCATOR) | OPTION(FRAMES) | OPTION(DOMAINS) | OPTION(ENGINE) | OPTION(DURATION) | OPTION(FOLLOW_FORKS) | \
		 OPTION(RING_READERS) | OPTION(RING_WAIT) | OPTION(SAMPLE_BYTES) | OPTION(HOLD))
#define TRACEBACKS (OPTION(FUNCTIONS) | OPTION(FRAMES_SHOWN) | OPTION(MOST_RECENT_FIRST))
#define GROUPING (OPTION(BY) | OPTION(CUMULATIVE) | OPTION(FILTER) | OPTION(LIMIT) | OPTION(FRAMES) | \
		  OPTION(HIDE) | OPTION(SHOW_RUNTIME) | OPTION(STRICT))

#define SNAP_HELP \
	"SNAP is a PID (a fresh snapshot of the live process, else the last one kept), the id\n" \
	"of a kept one such as s17, PID:NAME, PID:exit for the last one of a process that has\n" \
	"ended, UNIT:NAME, UNIT:first or UNIT:last of a service that is watched, or a file with\n" \
	"a / in its name; of several in a file, FILE:s17, FILE:NAME or FILE:2, else its last.\n"

const struct command commands[] = {
	{ "attach", "PID", "trace a running process",
	  "Returns when it is traced, and with --duration when it is traced no more.  Starts a\n"
	  "daemon when none runs.\n",
	  TRACING | OPTION(RELEASE), 1, 1, false, cmd_attach },
	{ "run", "[--] COMMAND [ARG...]", "run a command, traced from its first instruction",
	  "The exit status is the command's, 126 or 127 when it cannot be run, 128+n when signal\n"
	  "n ended it.  What is said about the run goes to standard error, or to the --output FILE.\n",
	  TRACING | OPTION(FAIL_OVER) | OPTION(OUTPUT), 1, -1, true, cmd_run },
	{ "detach", "PID | --all", "stop tracing; the process is as it was before", NULL,
	  OPTION(ALL) | OPTION(KEEP), 0, 1, false, cmd_detach },
	{ "list", "", "show what is traced, and by which daemon", NULL, 0, 0, 0, false, cmd_list },
	{ "status", "PID", "show traced memory, limits and counters of a traced process", NULL,
	  OPTION(STRICT), 1, 1, false, cmd_status },
	{ "metrics", "", "print the figures of what is traced for a monitoring system",
	  "The text is OpenMetrics, or with --format prometheus what older servers and promtool read.\n",
	  OPTION(METRICS_FORMAT), 0, 0, false, cmd_metrics },
	{ "events", "[PID]", "follow what happens: new snapshots, ends of processes, limits that are reached",
	  "Of all that is traced, until the command is ended, or of one process, until it is no longer traced.\n"
	  "With --json it prints one document a line.\n",
	  0, 0, 1, false, cmd_events },
	{ "snapshot", "PID", "take a snapshot and keep it; prints its id", NULL,
	  OPTION(NAME) | OPTION(BLOCKS), 1, 1, false, cmd_snapshot },
	{ "snapshots", "[PID | FILE]", "show the kept snapshots, or those of a file", NULL, 0, 0, 1, false, cmd_snapshots },
	{ "rm", "ID...", "forget kept snapshots", NULL, 0, 1, -1, false, cmd_rm },
	{ "stats", "SNAP", "show which lines hold the memory", SNAP_HELP,
	  GROUPING | TRACEBACKS | OPTION(PRETTY) | OPTION(OLDER_THAN) | OPTION(CHURN) | OPTION(PEAK) |
	  OPTION(HISTOGRAM),
	  1, 1, false, cmd_stats },
	{ "diff", "OLD NEW", "show what grew and shrank between two snapshots",
	  "OLD and NEW are written as the SNAP of 'stats'.\n" SNAP_HELP,
	  GROUPING | TRACEBACKS | OPTION(SORT) | OPTION(BORN) | OPTION(CHURN), 2, 2, false, cmd_diff },
	{ "top", "PID", "watch the groups of live memory change, on a terminal",
	  "A process that is not traced yet is attached to, and let go at the end.  Keys: ? for help,\n"
	  "q to leave, g the next KEY, s the next order, / filter, b baseline, Enter tracebacks.\n"
	  "With --json it prints one document a refresh and needs no terminal.\n",
	  OPTION(BY) | OPTION(KEY) | OPTION(CUMULATIVE) | OPTION(FILTER) | OPTION(FRAMES) | OPTION(HIDE) |
	  OPTION(SHOW_RUNTIME) | OPTION(MOST_RECENT_FIRST) | OPTION(INTERVAL) | OPTION(ITERATIONS) | OPTION(TOP_SORT) | OPTION(ALLOCATOR) |
	  OPTION(DOMAINS) | OPTION(ENGINE) | OPTION(HOLD) | OPTION(RING_READERS) | OPTION(RING_WAIT) |
	  OPTION(SAMPLE_BYTES), 1, 1, false, cmd_top },
	{ "trend", "SNAP SNAP SNAP...", "show what grows steadily over three or more snapshots, and how fast",
	  "In the order in which they were taken.  Growth is the median of all pairs, in bytes an hour;\n"
	  "steadiness is 1 for what grew each time, 0 for what goes up and down.\n" SNAP_HELP,
	  GROUPING | TRACEBACKS, 3, -1, false, cmd_trend },
	{ "leaks", "PID [T]", "wait for T, then show what was allocated before the half of it and is still there",
	  "T is 60s unless given.  A process that is not traced yet is attached to, and let go at the end.\n",
	  GROUPING | TRACEBACKS | OPTION(PRETTY) | OPTION(ALLOCATOR) | OPTION(DOMAINS) | OPTION(ENGINE) | OPTION(HOLD) |
	  OPTION(RING_READERS) | OPTION(RING_WAIT) | OPTION(SAMPLE_BYTES), 1, 2, false, cmd_leaks },
	{ "block", "PID ADDRESS", "show the traceback that allocated the block holding ADDRESS", NULL,
	  TRACEBACKS, 2, 2, false, cmd_block },
	{ "mismatches", "PID", "show frees that should not have been, each with where it was",
	  "Double frees and frees of what is no block are always noted; that of what new has made by free,\n"
	  "or of what new[] has made by delete, when the process is traced with --domains malloc,new.\n",
	  TRACEBACKS, 1, 1, false, cmd_mismatches },
	{ "clear", "PID", "forget the traces gathered so far", NULL, 0, 1, 1, false, cmd_clear },
	{ "reset-peak", "PID", "set the peak to what is traced now", NULL, 0, 1, 1, false, cmd_reset_peak },
	{ "dump", "SNAP FILE", "write a snapshot to a file that needs nothing else to be read", SNAP_HELP,
	  OPTION(APPEND) | OPTION(BLOCKS), 2, 2, false, cmd_dump },
	{ "load", "FILE", "check a snapshot file and show what it holds", NULL, 0, 1, 1, false, cmd_load },
	{ "export", "SNAP --format FORMAT", "write a snapshot for another program",
	  "Writes to standard output unless --output FILE is given.\n" SNAP_HELP,
	  OPTION(FORMAT) | OPTION(OUTPUT) | OPTION(PYTHON) | OPTION(BLOCKS) | OPTION(FILTER) | OPTION(FRAMES) |
	  OPTION(HIDE) | OPTION(SHOW_RUNTIME) | OPTION(STRICT), 1, 1, false, cmd_export },
	{ "watch", "[UNIT | --exe PATH]", "trace each new process of a service, and take snapshots; show what is watched",
	  "Each new main process of the systemd service UNIT is traced as soon as it is seen, or each\n"
	  "process that runs PATH.  The rule outlives the daemon.  Without a name: shows the rules.\n"
	  "UNIT:first and UNIT:last name the oldest and the newest snapshot.\n"
	  "With --from-start a drop-in has systemd start the service through a program that waits to be\n"
	  "traced, so that nothing is missed; the service is not restarted for that.\n",
	  OPTION(EXE) | OPTION(EVERY) | OPTION(KEEP_COUNT) | OPTION(KEEP_AGE) | OPTION(KEEP_SIZE) | OPTION(FRAMES) |
	  OPTION(ENGINE) | OPTION(FOLLOW_FORKS) | OPTION(FROM_START) | OPTION(RSS_LIMIT) | OPTION(RSS_SLOPE), 0, 1, false, cmd_watch },
	{ "unwatch", "UNIT | --exe PATH", "end that; what is traced for it is let go, snapshots stay", NULL,
	  OPTION(EXE), 0, 1, false, cmd_unwatch },
	{ "history", "UNIT | --exe PATH", "show what was traced of a service or program, and the snapshots of it", NULL,
	  OPTION(EXE), 0, 1, false, cmd_history },
	{ "help", "[COMMAND]", "show this help, or that of a command", NULL, 0, 0, 1, false, cmd_help },
	{ .name = NULL },
};

const struct command *command_find(const char *name)
{
	for (const struct command *command = commands; command->name; command++)
		if (strcmp(command->name, name) == 0)
			return command;
	return NULL;
}
