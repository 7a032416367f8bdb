#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/launch.h"
#include "cli/show.h"
#include "cli/tracing.h"

#include "base/clock.h"
#include "export/text.h"
#include "export/printable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run {
	const struct options *options;
	struct session session;
	struct launch launch;
	FILE *report;                   /* standard output belongs to the command */
	char name[TRACING_NAME_MAX];
	bool detached;
	char *let_go;                   /* by itself, before its end: why */
};

#define LOOK_AFTER_NS NSEC_PER_SEC     /* is it still traced? */

static void name_run(struct run *run, const char *program)
{
	const char *slash = strrchr(program, '/');

	snprintf(run->name, sizeof(run->name), "%d (%.40s)", (int)run->launch.pid, slash ? slash + 1 : program);
}

static int open_report(struct run *run)
{
	const char *path = run->options->output;

	run->report = stderr;
	if (!path)
		return EXIT_DONE;
	run->report = fopen(path, "we");
	if (!run->report)
		return fail("cannot write to %s: %s; nothing was run", path, strerror(errno));
	return EXIT_DONE;
}

static int fail_exec(const char *program, int result)
{
	/* The kernel's answer is the same for a script whose "#!" names nothing. */
	if (result == -ENOENT && strchr(program, '/') && access(program, F_OK) == 0) {
		fail("cannot run %s: it is there, but its interpreter (after \"#!\", or its loader) is not; check its "
		     "first line", program);
		return EXIT_NOT_FOUND;
	}
	if (result == -ENOENT) {
		fail("cannot run %s: there is no such command; check its name and PATH", program);
		return EXIT_NOT_FOUND;
	}
	fail("cannot run %s: %s; check that it is an executable file, and whom it belongs to", program,
	     strerror(-result));
	return EXIT_CANNOT_EXECUTE;
}

/* The end of a process that never was the command is of no use to anybody. */
static void forget_last_snapshot(struct run *run)
{
	json_t *gone = NULL, *error = NULL, *more = NULL;
	const char *what = "cannot forget a snapshot";

	if (session_try(&run->session, what, "WaitGone", json_pack("{s:i}", "pid", (int)run->launch.pid), &gone,
			&error) == EXIT_DONE && *answer_text(gone, "snapshot"))
		session_try(&run->session, what, "RemoveSnapshots",
			    json_pack("{s:[O]}", "ids", json_object_get(gone, "snapshot")), NULL, &more);
	json_decref(gone);
	json_decref(error);
	json_decref(more);
}

/* From the fork to the first instruction of the command. */
static int start_traced(struct run *run, char **argv)
{
	int r = launch_start(&run->launch, argv);

	if (r < 0)
		return fail("cannot run %s: no process can be made: %s", argv[0], strerror(-r));
	name_run(run, argv[0]);
	r = tracing_attach(&run->session, run->options, run->launch.pid, run->name, true, NULL);
	if (r != EXIT_DONE) {
		launch_abandon(&run->launch);
		return r;
	}
	r = launch_go(&run->launch, session_daemon(&run->session));
	if (r == 0)
		return EXIT_DONE;
	forget_last_snapshot(run);
	return fail_exec(argv[0], r);
}

static void tell_let_go(struct run *run, const json_t *gone)
{
	if (run->let_go || !*answer_text(gone, "reason"))
		return;
	run->let_go = strdup(answer_text(gone, "reason"));
	fputs("allocwatch: ", stderr);
	printable_write(stderr, run->name, strlen(run->name), false);
	fputs(" was let go and runs on untraced: ", stderr);
	printable_write(stderr, answer_text(gone, "reason"), strlen(answer_text(gone, "reason")), false);
	fputc('\n', stderr);
}

/* Who starts a server wants to know it before the server ends. */
static void look_after(struct run *run)
{
	json_t *reply = NULL, *error = NULL, *gone = NULL, *other = NULL;
	int pid = (int)run->launch.pid;

	session_try(&run->session, "", "GetStatus", json_pack("{s:i}", "pid", pid), &reply, &error);
	if (error && session_error_is(error, "NotTraced") &&
	    session_try(&run->session, "", "WaitGone", json_pack("{s:i}", "pid", pid), &gone, &other) == EXIT_DONE)
		tell_let_go(run, gone);
	json_decref(reply);
	json_decref(error);
	json_decref(gone);
	json_decref(other);
}

static void wait_for_command(struct run *run)
{
	uint64_t duration = run->options->duration_ns;

	if (duration == 0 || duration > LOOK_AFTER_NS) {
		if (launch_wait(&run->launch, clock_monotonic_ns() + LOOK_AFTER_NS) == 0)
			return;
		look_after(run);
		duration -= duration > 0 ? LOOK_AFTER_NS : 0;
	}
	if (duration > 0 && launch_wait(&run->launch, clock_monotonic_ns() + duration) == -ETIME) {
		run->detached = tracing_detach(&run->session, run->launch.pid, run->name, false, NULL) == EXIT_DONE;
		launch_wait(&run->launch, UINT64_MAX);
	} else if (duration == 0) {
		launch_wait(&run->launch, UINT64_MAX);
	}
}

/* The kept snapshot of its end, a SnapshotInfo; NULL when there is none (said on stderr). */
static json_t *last_snapshot(struct run *run)
{
	json_t *gone, *reply, *info, *found = NULL;
	int pid = (int)run->launch.pid;
	size_t i;

	if (session_call(&run->session, "cannot wait for the last snapshot", "WaitGone",
			 json_pack("{s:i}", "pid", pid), &gone) != EXIT_DONE)
		return NULL;
	tell_let_go(run, gone);
	if (run->let_go) {
		json_decref(gone);
		return NULL;
	}
	if (session_call(&run->session, "cannot find the last snapshot", "ListSnapshots",
			 json_pack("{s:i}", "pid", pid), &reply) == EXIT_DONE) {
		json_array_foreach(json_object_get(reply, "snapshots"), i, info) {
			if (strcmp(answer_text(info, "id"), answer_text(gone, "snapshot")) == 0)
				found = json_incref(info);
		}
		json_decref(reply);
		if (!found)
			fail("the daemon kept no last snapshot of %s; its log may say why", run->name);
	}
	json_decref(gone);
	return found;
}

static int print_report(struct run *run, const json_t *info)
{
	char size[TEXT_SIZE_MAX];

	if (options_have(run->options, OPTION(JSON)))
		return show_json_to(run->report, json_pack("{s:i, s:i, s:O?, s:s*}", "pid", (int)run->launch.pid,
							   "exit_status", launch_exit_status(&run->launch),
							   "snapshot", info, "let_go", run->let_go));
	if (!info)
		return EXIT_DONE;
	fputs("allocwatch: ", run->report);
	printable_write(run->report, run->name, strlen(run->name), false);
	fprintf(run->report, " ended with %s in %" PRIu64 " blocks still allocated; snapshot ",
		text_size(size, (double)answer_number(info, "size"), false), answer_number(info, "count"));
	printable_write(run->report, answer_text(info, "id"), strlen(answer_text(info, "id")), false);
	fputc('\n', run->report);
	return EXIT_DONE;
}

/* The command's own status, unless something was asked for that outweighs it. */
static int verdict(const struct run *run, const json_t *info, int reported)
{
	const struct options *options = run->options;
	int status = launch_exit_status(&run->launch);
	char over[TEXT_SIZE_MAX], limit[TEXT_SIZE_MAX];

	if (!options_have(options, OPTION(FAIL_OVER)))
		return status == 0 ? reported : status;
	if (!info)
		return status == 0 ? EXIT_FAILED : status;
	if (answer_number(info, "size") <= options->fail_over)
		return status == 0 ? reported : status;
	fail("%s left %s allocated, more than the %s of --fail-over; 'allocwatch stats %s' shows where", run->name,
	     text_size(over, (double)answer_number(info, "size"), false),
	     text_size(limit, (double)options->fail_over, false), answer_text(info, "id"));
	return EXIT_INEXACT;
}

static int run_command(struct run *run, char **argv)
{
	json_t *info = NULL;
	int r = start_traced(run, argv);

	if (r != EXIT_DONE)
		return r;
	wait_for_command(run);
	if (!run->detached)
		info = last_snapshot(run);
	r = verdict(run, info, print_report(run, info));
	json_decref(info);
	return r;
}

int cmd_run(const struct options *options, int argc, char **argv)
{
	struct run run = { .options = options };
	int r;

	(void)argc;
	if (options_have(options, OPTION(FAIL_OVER)) && options->duration_ns > 0)
		return fail_usage("run", "--fail-over needs the command traced to its end, which --duration prevents");
	r = open_report(&run);
	if (r != EXIT_DONE)
		return r;
	r = session_open_or_start(options, &run.session);
	if (r == EXIT_DONE) {
		r = run_command(&run, argv);
		session_close(&run.session);
	}
	free(run.let_go);
	if (run.report != stderr && fclose(run.report) != 0 && r == EXIT_DONE)
		r = fail("cannot write to %s: %s", options->output, strerror(errno));
	return r;
}
