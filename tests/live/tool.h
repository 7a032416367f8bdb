/* allocwatch as a user has it: a private daemon with a folder of its own, and the client. */
#ifndef ALLOCWATCH_TESTS_TOOL_H
#define ALLOCWATCH_TESTS_TOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct state;
struct subject;
struct tool;

struct tool_run {
	int status;                     /* the exit status; 128+n after signal n */
	char *out, *err;
};

/* Starts a daemon of this process's user, or of the ordinary one, and waits until it answers. */
struct tool *tool_start(void);
struct tool *tool_start_ordinary(void);
/* A second one beside the first. */
struct tool *tool_start_named(const char *name);
/* One whose daemon another program runs (setpriv, unshare); the words up to a NULL, kept. */
struct tool *tool_start_wrapped(const char *const *wrapper);
/* One that has other programs for its tracers; a path in the build tree. */
struct tool *tool_start_with_tracer(const char *tracer);
/* The daemon that root runs for all users; "--max-sessions", say, and its value, or NULL. */
struct tool *tool_start_system(const char *option, const char *value);
/* Another user of it. */
struct tool *tool_of_user(const struct tool *system, uid_t uid);
struct tool *tool_start_ordinary_wrapped(const char *const *wrapper);
pid_t tool_daemon(const struct tool *tool);
const char *tool_socket(const struct tool *tool);
/* A signal to the daemon, and its end, which must be exit status 0. */
void tool_end_daemon(struct tool *tool, int sig);
/* SIGKILL to the daemon, and its end. */
void tool_kill_daemon(struct tool *tool);
/* Another daemon in the place of one that ended. */
void tool_start_again(struct tool *tool);
/* Takes out by hand, as a person would, what a tracer has left; pid as text, NULL: in all processes.  The exit status. */
int tool_heal(const char *pid);
/* One case at a time, until its end: that heals all processes there are, or has one that nobody else is to heal meanwhile. */
void tool_keep_healers_out(void);
/* A uprobe that is taken away from one process goes from all that have any, with whatever int3 stands there: it is taken for the uprobe's.
 * What one case sets in a file that others use as well, the loader, would take along the int3 of a case with uprobes elsewhere. */
void tool_keep_uprobes_out(void);
struct subject *tool_heal_begin(const char *pid);
/* The tracer of a process, from its TracerPid, or without ptrace who has its memory open; fails when there is none. */
pid_t tool_tracer(pid_t pid);
/* 0: there is none. */
pid_t tool_find_tracer(pid_t pid);

/* The daemon's child that traces, or takes out what a tracer has left; 0: there is none now. */
pid_t tool_daemons_child(const struct tool *tool, bool heals);

/* The daemon's symbolizer, or one that asks a server for debug information; 0: none runs. */
pid_t tool_symbolizer(const struct tool *tool);
pid_t tool_fetcher(const struct tool *tool);

/* Runs the client with these arguments, up to a NULL. */
struct tool_run tool_try(struct tool *tool, ...) __attribute__((sentinel));
/* The same, and it must exit with 0; its stdout. */
const char *tool_out(struct tool *tool, ...) __attribute__((sentinel));
/* The same with --json; the document. */
json_t *tool_json(struct tool *tool, ...) __attribute__((sentinel));
/* Starts the client and does not wait; its pid (a child of this process). */
pid_t tool_begin(struct tool *tool, ...) __attribute__((sentinel));

/* The same in a process group of its own, as a shell starts a job. */
pid_t tool_begin_job(struct tool *tool, ...) __attribute__((sentinel));

void tool_attach(struct tool *tool, pid_t pid);
/* With ptrace, of which the case is. */
void tool_attach_held(struct tool *tool, pid_t pid);
void tool_detach(struct tool *tool, pid_t pid);
/* What every live test ends with: detaches, and the victim is unharmed (state.h), no longer listed, and
 * quits as it does untraced. */
void tool_end(struct tool *tool, struct subject *subject, const struct state *before);
bool tool_lists(struct tool *tool, pid_t pid);
/* Wait until a process is traced, its own tracer having said so; and until it is listed no more.  When that does not come in time
 * the case fails. */
void tool_wait_until_traced(struct tool *tool, pid_t pid, int timeout_ms);
void tool_wait_until_gone(struct tool *tool, pid_t pid, int timeout_ms);
json_t *tool_status(struct tool *tool, pid_t pid);
/* "stats PID --json" and its like: a SNAP, or two. */
json_t *tool_stats(struct tool *tool, const char *snap);
json_t *tool_diff(struct tool *tool, const char *old, const char *new);
const char *pid_text(pid_t pid);

/* A number by its path in a document: json_number(status, "unknown.lost_events"). */
long long json_number(json_t *document, const char *path);
/* Of statistics, the count of the first row that has this text anywhere, as a file or an object; 0: none has. */
long long json_count_of(json_t *statistics, const char *text);
const char *json_text(json_t *document, const char *path);
/* The row of "statistics" one of whose frames ends with this file and line; NULL when none does. */
json_t *row_at(json_t *document, const char *file, int line);
bool has_frame_at(json_t *row, const char *file, int line);
/* The number of the line of a source file that holds this text; exactly one must. */
int line_of(const char *source, const char *text);

/* size and count of the row for this line, which must be there and be just that. */
void require_row(json_t *document, const char *source, const char *text, long long size, long long count);
/* exact, and nothing unknown: no unknown frees, no frees from before, nothing lost or missed. */
void require_nothing_unknown(json_t *status, long long before_attach_frees);
/* The same, and blocks, bytes and allocations are what the victim's last line tells. */
void require_tally(struct tool *tool, const struct subject *victim, long long before_attach_frees);

#endif
