#include "cli/command.h"
#include "cli/failure.h"
#include "cli/show.h"
#include "cli/terminal.h"
#include "cli/top_json.h"
#include "cli/top_loop.h"
#include "cli/tracing.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct view {
	const struct options *options;
	struct session session;
	pid_t pid;
	char name[TRACING_NAME_MAX];
	bool attached;                  /* by us: then we detach, too */
	int signals;
};

/* It may have ended since the last refresh, or another one has detached from it. */
static bool is_traced(struct view *view)
{
	json_t *error;
	int r = session_try(&view->session, "cannot detach", "GetStatus", json_pack("{s:i}", "pid", (int)view->pid), NULL,
			    &error);

	json_decref(error);
	return r == EXIT_DONE;
}

/* On a connection of its own: the other one may be in the middle of an answer. */
static int detach(struct view *view)
{
	char *path = strdup(view->session.path);
	struct options options = { .socket = path };
	int r;

	if (!path)
		return fail_memory();
	session_close(&view->session);
	r = session_open(&options, &view->session);
	if (r == EXIT_DONE && is_traced(view))
		r = tracing_detach(&view->session, view->pid, view->name, false, NULL);
	free(path);
	return r;
}

static struct top_settings settings_of(const struct options *options, const struct statistics_query *query,
				       struct source *source)
{
	struct top_settings settings = {
		.key = query->key,
		.sort = options->top_sort,
		.cumulative = query->cumulative,
		.most_recent_first = options_have(options, OPTION(MOST_RECENT_FIRST)),
		.traceback = query->traceback,
		.filters = query->filters,
		.filter_count = query->filter_count,
		.source = { source_line, source },
	};

	return settings;
}

static int end_of_loop(const struct top_loop *loop, int result)
{
	if (result == -ENOMEM)
		return fail_memory();
	if (result < 0)
		return fail("the view ended: %s; start it again", strerror(-result));
	if (loop->top->link == TOP_CUT)
		return fail("the daemon was gone at the end: %s; what it traced is let go", loop->top->over);
	return EXIT_DONE;
}

/* What is shown has ended by itself: nothing is left to detach from. */
static void forget_attach(struct view *view, const struct top *top)
{
	if (top->link == TOP_ENDED || top->link == TOP_CUT)
		view->attached = false;
}

static uint64_t interval_of(const struct options *options)
{
	return options_have(options, OPTION(INTERVAL)) ? options->interval_ns : TOP_INTERVAL_DEFAULT_NS;
}

static int show(struct view *view, struct top *top, int *ret_signal)
{
	struct top_loop loop = {
		.top = top,
		.fetch = top_fetch_new(&view->session, view->pid, interval_of(view->options), top_wants_blocks(top)),
		.pid = view->pid,
		.signals = view->signals,
		.refreshes_max = view->options->iterations,
	};
	const char *reason;
	int r;

	if (!loop.fetch)
		return fail_memory();
	memcpy(loop.name, view->name, sizeof(loop.name));
	loop.screen = screen_open(terminal_colours(stdout), &reason);
	if (loop.screen) {
		r = top_loop_run(&loop);
		screen_close(loop.screen);
		*ret_signal = r > 0 ? r : 0;
		r = end_of_loop(&loop, r);
	} else {
		r = fail("top cannot draw here: %s; 'allocwatch stats PID' prints once", reason);
	}
	top_fetch_free(loop.fetch);
	return r;
}

static int print(struct view *view, struct top *top, int *ret_signal)
{
	struct top_json json = {
		.session = &view->session,
		.top = top,
		.pid = view->pid,
		.signals = view->signals,
		.interval_ns = interval_of(view->options),
		.refreshes_max = view->options->iterations,
	};

	return top_json_run(&json, ret_signal);
}

static int run_view(struct view *view, const struct statistics_query *query, int *ret_signal)
{
	struct source *source = source_new();
	struct top_settings settings = settings_of(view->options, query, source);
	struct top *top = top_new(&settings);
	int r;

	if (!source || !top)
		r = fail_memory();
	else if (options_have(view->options, OPTION(JSON)))
		r = print(view, top, ret_signal);
	else
		r = show(view, top, ret_signal);
	if (top)
		forget_attach(view, top);
	if (*ret_signal == SIGINT)      /* as good a way to leave as any */
		*ret_signal = 0;
	top_free(top);
	source_free(source);
	return r;
}

static int check_terminal(const struct options *options)
{
	const char *reason;

	if (options_have(options, OPTION(JSON)) || screen_check(&reason))
		return EXIT_DONE;
	return fail("top cannot draw here: %s; use a terminal and set TERM to its type (such as xterm-256color), or "
		    "'allocwatch stats PID', 'diff OLD NEW' or 'top --json', which need none", reason);
}

static int open_view(struct view *view)
{
	int r = session_open_or_start(view->options, &view->session);

	if (r != EXIT_DONE)
		return r;
	r = top_loop_catch_signals(&view->signals);
	if (r < 0)
		return fail("cannot catch signals: %s", strerror(-r));
	tracing_name(view->name, view->pid);
	return tracing_attach_if_need_be(&view->session, view->options, view->pid, view->name, "show", &view->attached);
}

int cmd_top(const struct options *options, int argc, char **argv)
{
	struct view view = { .options = options, .signals = -1 };
	struct statistics_query query;
	int signal = 0;
	int r = tracing_pid("top", argv[0], &view.pid);

	(void)argc;
	if (r == EXIT_DONE)
		r = show_query(options, "top", &query);
	if (r == EXIT_DONE)
		r = check_terminal(options);
	if (r != EXIT_DONE)
		return r;
	setlocale(LC_CTYPE, "");        /* for the characters of names */
	r = open_view(&view);
	if (r == EXIT_DONE)
		r = run_view(&view, &query, &signal);
	if (view.attached) {
		int detached = detach(&view);

		r = r == EXIT_DONE ? detached : r;
	}
	session_close(&view.session);
	fd_close(&view.signals);
	return signal ? 128 + signal : r;
}
