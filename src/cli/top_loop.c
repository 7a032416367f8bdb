#include "cli/top_loop.h"

#include "base/clock.h"
#include "cli/top_layout.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Pieces of an answer that are read before the keyboard is looked at again. */
#define STEPS_MAX 4

enum { WATCH_KEYS, WATCH_SIGNALS, WATCH_DAEMON, WATCH_COUNT };

struct state {
	struct top_loop *loop;
	bool leave, stale;              /* stale: what is on the screen */
	int signal;                     /* that asked for the end */
	bool more;                      /* of an answer is at hand already */
};

int top_loop_catch_signals(int *ret_fd)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH };
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* --- the screen --- */

static int draw(struct state *state)
{
	struct top_loop *loop = state->loop;
	uint64_t now = clock_monotonic_ns(), asked = top_fetch_asked_ns(loop->fetch);
	const struct top_scene scene = {
		.now_ns = clock_realtime_ns(),
		.waiting_ns = asked > 0 && now > asked ? now - asked : 0,
		.target = loop->name,
	};
	struct canvas canvas;
	int width, height, y, x, r;

	screen_size(loop->screen, &width, &height);
	if (width != loop->top->width || height != loop->top->height)
		top_resize(loop->top, width, height);
	r = canvas_init(&canvas, width, height);
	if (r < 0)
		return r;
	r = top_layout(loop->top, &scene, &canvas);
	top_layout_cursor(loop->top, &y, &x);
	if (r == 0)
		screen_draw(loop->screen, &canvas, y, x);
	canvas_fini(&canvas);
	state->stale = false;
	return r;
}

/* --- signals --- */

/* As any program stops: by the signal itself, so that the shell sees what it expects. */
static void stop(struct state *state)
{
	sigset_t set;

	screen_suspend(state->loop->screen);
	signal(SIGTSTP, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void take_signal(struct state *state, int signal)
{
	switch (signal) {
	case SIGTSTP:
		stop(state);
		break;
	case SIGCONT:
		screen_resume(state->loop->screen);
		break;
	case SIGWINCH:
		screen_measure(state->loop->screen);
		break;
	default:
		state->signal = signal;
		state->leave = true;
	}
	state->stale = true;
}

static void take_signals(struct state *state)
{
	struct signalfd_siginfo info;

	while (read(state->loop->signals, &info, sizeof(info)) == sizeof(info))
		take_signal(state, (int)info.ssi_signo);
}

/* --- the keyboard --- */

static void grant(struct state *state, enum top_wish wish)
{
	struct top_loop *loop = state->loop;

	switch (wish) {
	case TOP_QUIT:
		state->leave = true;
		break;
	case TOP_SAVE:
		if (loop->top->link == TOP_CUT)
			top_say(loop->top, "There is no daemon that could keep it");
		else if (!top_fetch_save(loop->fetch, loop->top->typing))
			top_say(loop->top, "The last one is not kept yet: try again");
		else
			top_say(loop->top, "A snapshot is being taken");
		break;
	case TOP_REFRESH:
		top_fetch_hurry(loop->fetch);
		break;
	case TOP_REDRAW:
		screen_forget(loop->screen);
		break;
	case TOP_NOTHING:
		break;
	}
}

static int take_keys(struct state *state)
{
	enum top_wish wish;
	uint32_t key;
	int r = 0;

	while (r == 0 && !state->leave && screen_key(state->loop->screen, &key)) {
		r = top_key(state->loop->top, key, &wish);
		grant(state, wish);
		state->stale = true;
	}
	return r;
}

/* --- the daemon --- */

static const char *why_over(const struct snapshot *last)
{
	if (strcmp(last->name, "exit") == 0)
		return "The process has ended: this is its last snapshot";
	if (strcmp(last->name, "exec") == 0)
		return "It runs another program, which is not traced: this is the last snapshot before";
	return "It is no longer traced: this is its last snapshot";
}

/* An exec changes it; of a process that has ended there is none. */
static void update_name(struct top_loop *loop)
{
	char name[TRACING_NAME_MAX];

	if (strchr(tracing_name(name, loop->pid), '('))
		memcpy(loop->name, name, sizeof(loop->name));
}

static int take_snapshot(struct state *state, struct snapshot *snapshot)
{
	struct top_loop *loop = state->loop;
	struct top *top = loop->top;
	uint64_t began = clock_monotonic_ns();
	int r;

	/* What came too late for a frozen view is asked for again. */
	if (top->frozen && top->newest)
		return 0;
	r = top_take_snapshot(top, snapshot);
	if (r == 0 && snapshot->id && *snapshot->id)
		top_end(top, TOP_ENDED, why_over(snapshot));
	update_name(loop);
	top_fetch_pace(loop->fetch, began, clock_monotonic_ns());
	if (++loop->refreshes == loop->refreshes_max)
		state->leave = true;
	return r;
}

static int take_news(struct state *state, struct top_news *news)
{
	struct top *top = state->loop->top;
	int r = 0;

	switch (news->kind) {
	case TOP_NEWS_SNAPSHOT:
		r = take_snapshot(state, news->snapshot);
		snapshot_put(news->snapshot);
		break;
	case TOP_NEWS_SAVED:
		top_say(top, "Kept as %s", news->text);
		break;
	case TOP_NEWS_FAILED:
		top_say(top, "No refresh: %s", news->text);
		break;
	case TOP_NEWS_OVER:
		top_end(top, TOP_ENDED, news->text);
		break;
	case TOP_NEWS_CUT:
		top_end(top, TOP_CUT, news->text);
		break;
	default:
		return 0;
	}
	state->stale = true;
	return r;
}

static int take_answers(struct state *state)
{
	struct top_news news = { .kind = TOP_MORE_COMES };
	int r = 0;

	for (int i = 0; r == 0 && i < STEPS_MAX && news.kind == TOP_MORE_COMES; i++) {
		r = top_fetch_step(state->loop->fetch, clock_monotonic_ns(), &news);
		if (r == 0)
			r = take_news(state, &news);
	}
	state->more = news.kind == TOP_MORE_COMES;
	return r;
}

/* --- round and round --- */

static bool wants_figures(const struct top_loop *loop)
{
	return loop->top->link == TOP_STARTING || (loop->top->link == TOP_LIVE && !loop->top->frozen);
}

/* Until the next refresh, or a second, in which the times that are shown change. */
static int timeout_ms(const struct state *state)
{
	uint64_t now = clock_monotonic_ns(), due = top_fetch_due_ns(state->loop->fetch), wait = NSEC_PER_SEC;

	if (state->more)
		return 0;
	if (wants_figures(state->loop) && top_fetch_asked_ns(state->loop->fetch) == 0)
		wait = due <= now ? 0 : due - now < wait ? due - now : wait;
	return (int)((wait + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
}

static int wait_for_any(struct state *state)
{
	struct top_loop *loop = state->loop;
	struct pollfd watched[WATCH_COUNT] = {
		[WATCH_KEYS] = { .fd = STDIN_FILENO, .events = POLLIN },
		[WATCH_SIGNALS] = { .fd = loop->signals, .events = POLLIN },
		[WATCH_DAEMON] = { .fd = -1, .events = POLLIN },
	};
	int r;

	if (top_fetch_asked_ns(loop->fetch) > 0)
		watched[WATCH_DAEMON].fd = top_fetch_descriptor(loop->fetch);
	r = poll(watched, WATCH_COUNT, timeout_ms(state));
	if (r < 0 && errno != EINTR)
		return -errno;
	if (r == 0)
		state->stale = true;
	/* A terminal that is gone can be read for ever. */
	if (r > 0 && (watched[WATCH_KEYS].revents & (POLLHUP | POLLERR | POLLNVAL))) {
		state->signal = SIGHUP;
		state->leave = true;
	}
	return 0;
}

int top_loop_run(struct top_loop *loop)
{
	struct state state = { .loop = loop, .stale = true };
	int r = 0;

	while (r == 0 && !state.leave) {
		r = top_fetch_begin(loop->fetch, clock_monotonic_ns(), wants_figures(loop));
		if (r == 0 && state.stale)
			r = draw(&state);
		if (r == 0)
			r = wait_for_any(&state);
		/* What was typed before Ctrl-Z is for us, not for the shell. */
		if (r == 0 && !state.leave)
			r = take_keys(&state);
		take_signals(&state);
		if (r == 0 && !state.leave)
			r = take_answers(&state);
	}
	return r < 0 ? r : state.signal;
}
