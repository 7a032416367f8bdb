/* The commands of allocwatch: what each is called, what it takes, what it does. */
#ifndef ALLOCWATCH_CLI_COMMAND_H
#define ALLOCWATCH_CLI_COMMAND_H

#include "cli/options.h"

struct command {
	const char *name;
	const char *arguments;          /* for the usage line */
	const char *summary;            /* one line for the list of commands */
	const char *details;            /* further lines for its own help; may be NULL */
	uint64_t options;               /* OPTION() bits besides OPTIONS_COMMON */
	int least, most;                /* arguments it takes; most -1: any number */
	bool runs_another;              /* its arguments are a command line */
	/* Returns an exit status and has said on stderr why it is not 0. */
	int (*run)(const struct options *options, int argc, char **argv);
};

/* Ends with a command whose name is NULL. */
extern const struct command commands[];
/* NULL when there is none. */
const struct command *command_find(const char *name);

int cmd_attach(const struct options *options, int argc, char **argv);
int cmd_run(const struct options *options, int argc, char **argv);
int cmd_detach(const struct options *options, int argc, char **argv);
int cmd_trend(const struct options *options, int argc, char **argv);
int cmd_leaks(const struct options *options, int argc, char **argv);
int cmd_list(const struct options *options, int argc, char **argv);
int cmd_status(const struct options *options, int argc, char **argv);
int cmd_events(const struct options *options, int argc, char **argv);
int cmd_metrics(const struct options *options, int argc, char **argv);
int cmd_snapshot(const struct options *options, int argc, char **argv);
int cmd_snapshots(const struct options *options, int argc, char **argv);
int cmd_rm(const struct options *options, int argc, char **argv);
int cmd_stats(const struct options *options, int argc, char **argv);
int cmd_diff(const struct options *options, int argc, char **argv);
int cmd_block(const struct options *options, int argc, char **argv);
int cmd_mismatches(const struct options *options, int argc, char **argv);
int cmd_clear(const struct options *options, int argc, char **argv);
int cmd_reset_peak(const struct options *options, int argc, char **argv);
int cmd_dump(const struct options *options, int argc, char **argv);
int cmd_load(const struct options *options, int argc, char **argv);
int cmd_export(const struct options *options, int argc, char **argv);
int cmd_top(const struct options *options, int argc, char **argv);
int cmd_watch(const struct options *options, int argc, char **argv);
int cmd_unwatch(const struct options *options, int argc, char **argv);
int cmd_history(const struct options *options, int argc, char **argv);
int cmd_help(const struct options *options, int argc, char **argv);

#endif
