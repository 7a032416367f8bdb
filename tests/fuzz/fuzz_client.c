/* The client of a daemon that means harm: each command, and the view of `top`, against answers that are an input's.
 *
 * connect() is the linker's wrap: it hands out the end of a pair of sockets in which the whole answer lies already. */
#define _GNU_SOURCE              /* open_memstream */
#include "fuzz.h"
#include "json.h"

#include "base/clock.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/top_fetch.h"
#include "cli/top_layout.h"
#include "varlink/client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKET "/nowhere/socket"
#define CONNECTIONS_MAX 3        /* of one input; then nobody listens any more */
#define ARGUMENTS_MAX 12

/* --- the daemon --- */

static struct fuzz_bytes answers;
static int peers[CONNECTIONS_MAX];
static unsigned peer_count;

int __wrap_connect(int sock, const struct sockaddr *address, socklen_t len);

int __wrap_connect(int sock, const struct sockaddr *address, socklen_t len)
{
	const int space = 1 << 21;
	int pair[2];

	(void)address;
	(void)len;
	if (peer_count == CONNECTIONS_MAX) {
		errno = ECONNREFUSED;
		return -1;
	}
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	setsockopt(pair[1], SOL_SOCKET, SO_SNDBUFFORCE, &space, sizeof(space));
	/* As much as fits; the rest never comes. */
	if (answers.left > 0 && send(pair[1], answers.at, answers.left, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		MUST(errno == EAGAIN || errno == EMSGSIZE);
	shutdown(pair[1], SHUT_WR);
	MUST(dup2(pair[0], sock) == sock);
	close(pair[0]);
	peers[peer_count++] = pair[1];
	return 0;
}

static void close_peers(void)
{
	while (peer_count > 0)
		close(peers[--peer_count]);
}

/* --- what is printed --- */

static char *printed[2];
static size_t printed_len[2];
static FILE *kept_out, *kept_err;

static void catch_output(void)
{
	kept_out = stdout;
	kept_err = stderr;
	stdout = open_memstream(&printed[0], &printed_len[0]);
	stderr = open_memstream(&printed[1], &printed_len[1]);
	MUST(stdout && stderr);
}

/* Nothing in it steers a terminal. */
static void check_harmless(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t byte = (uint8_t)text[i];

		MUST(byte >= 0x20 || byte == '\n' || byte == '\t');
		MUST(byte != 0x7f);
		MUST(byte != 0xc2 || i + 1 == len || (uint8_t)text[i + 1] >= 0xa0 || (uint8_t)text[i + 1] < 0x80);
	}
}

static void release_output(bool plain)
{
	fclose(stdout);
	fclose(stderr);
	stdout = kept_out;
	stderr = kept_err;
	if (plain)
		check_harmless(printed[0], printed_len[0]);
	check_harmless(printed[1], printed_len[1]);
	free(printed[0]);
	free(printed[1]);
}

/* --- the commands --- */

static const char *const lines[][ARGUMENTS_MAX] = {
	{ "list" }, { "status", "1" }, { "snapshots" }, { "snapshot", "1" }, { "rm", "s1" }, { "clear", "1" },
	{ "detach", "1" }, { "detach", "--all" }, { "attach", "1" }, { "block", "1", "0x40" },
	{ "block", "--functions", "1", "64" }, { "stats", "1" },
	{ "stats", "--by", "traceback", "--functions", "--show-runtime", "1" },
	{ "stats", "--by", "thread", "--pretty", "s1" }, { "stats", "--churn", "--histogram", "--filter", "-*x*@all", "1:n" },
	{ "stats", "--by", "function", "--cumulative", "--peak", "1" }, { "diff", "s1", "1" },
	{ "diff", "--by", "traceback", "--sort", "churn", "--churn", "s1", "s2" }, { "diff", "--born", "s1", "s2" },
	{ "trend", "s1", "s2", "s3" }, { "list", "--json" }, { "status", "--json", "1" }, { "stats", "--json", "1" },
	{ "diff", "--json", "s1", "s2" }, { "export", "--format", "tracemalloc", "1" },
	{ "export", "--format", "tracemalloc", "--blocks", "s1" }, { "metrics" }, { "watch" }, { "watch", "a.service" },
	{ "unwatch", "a.service" }, { "history", "a.service" }, { "history", "--json", "a.service" }, { "events" }, { "events", "--json", "1" },
};

#define LINES (sizeof(lines) / sizeof(lines[0]))

static bool is_plain(const char *const *line)
{
	if (strcmp(line[0], "export") == 0 || strcmp(line[0], "metrics") == 0)
		return false;
	for (unsigned i = 0; line[i]; i++) {
		if (strcmp(line[i], "--json") == 0)
			return false;
	}
	return true;
}

static bool is_about_snapshot(const char *const *line)
{
	static const char *const names[] = { "stats", "diff", "trend", "export" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(line[0], names[i]) == 0)
			return true;
	}
	return false;
}

static int run_line(const char *const *line)
{
	struct options options = { .socket = SOCKET };
	char *argv[ARGUMENTS_MAX];
	const struct command *command = command_find(line[0]);
	int argc = 0, first, r;

	for (; line[argc]; argc++)
		argv[argc] = (char *)line[argc];
	argv[argc] = NULL;
	MUST(command && options_parse(&options, command, argc, argv, &first) == EXIT_DONE);
	r = command->run(&options, argc - first, argv + first);
	options_fini(&options);
	return r;
}

static void fuzz_client_run(const uint8_t *data, size_t len)
{
	const char *const *line;
	int r;

	answers = (struct fuzz_bytes){ data, len };
	line = lines[fuzz_take_number(&answers, 1) % LINES];
	catch_output();
	r = run_line(line);
	release_output(is_plain(line));
	MUST(r == EXIT_DONE || r == EXIT_FAILED || r == EXIT_USAGE);
	if (peer_count > 0 && answers.left > 0)
		fuzz_reached(0);
	if (printed_len[1] == 0 && r == EXIT_DONE)
		fuzz_reached(is_about_snapshot(line) ? 2 : 1);
	close_peers();
}

/* --- top --- */

static void draw(struct top *top)
{
	const struct top_scene scene = { .now_ns = 1700000000000000000, .target = "1 (init)" };
	struct canvas canvas;
	int y, x;

	MUST(canvas_init(&canvas, top->width, top->height) == 0 && top_layout(top, &scene, &canvas) == 0);
	top_layout_cursor(top, &y, &x);
	for (y = 0; y < canvas.height; y++) {
		char *line = canvas_line(&canvas, y);

		MUST(line);
		check_harmless(line, strlen(line));
		free(line);
	}
	canvas_fini(&canvas);
}

static void press(struct top *top, struct fuzz_bytes *keys)
{
	static const uint32_t special[] = { TOP_KEY_ENTER, TOP_KEY_ESCAPE, TOP_KEY_UP, TOP_KEY_DOWN, TOP_KEY_LEFT,
					    TOP_KEY_RIGHT, TOP_KEY_PAGE_DOWN, TOP_KEY_END, 'g', 's', 'c', 'b', '/', '*' };
	enum top_wish wish;

	MUST(top_key(top, special[fuzz_take_number(keys, 1) % (sizeof(special) / sizeof(special[0]))], &wish) == 0);
	draw(top);
}

/* Figures as they come, drawn in a window of the input's size, with a key after each. */
static void watch(struct top *top, struct top_fetch *fetch, struct fuzz_bytes *keys)
{
	struct top_news news = { .kind = TOP_NO_NEWS };
	unsigned requests = 0;

	while (requests < 8 && news.kind != TOP_NEWS_CUT) {
		if (news.kind != TOP_MORE_COMES) {
			requests++;
			top_fetch_hurry(fetch);
			MUST(top_fetch_begin(fetch, requests * NSEC_PER_SEC, true) == 0);
		}
		MUST(top_fetch_step(fetch, requests * NSEC_PER_SEC, &news) == 0);
		if (news.kind == TOP_NO_NEWS)
			return;
		fuzz_reached(0);
		if (news.kind == TOP_NEWS_SNAPSHOT) {
			fuzz_reached(1);
			MUST(top_take_snapshot(top, news.snapshot) == 0);
			snapshot_put(news.snapshot);
		} else if (news.kind == TOP_NEWS_OVER || news.kind == TOP_NEWS_CUT) {
			top_end(top, news.kind == TOP_NEWS_OVER ? TOP_ENDED : TOP_CUT, news.text);
		} else if (news.kind != TOP_MORE_COMES) {
			top_say(top, "%s", news.text);
		}
		draw(top);
		press(top, keys);
	}
}

/* A byte for the size of the window and the key, sixteen keys, then what the daemon says. */
static void fuzz_top_run(const uint8_t *data, size_t len)
{
	struct top_settings settings = { .key = KEY_LINENO };
	struct session session = { .path = (char *)SOCKET };
	struct fuzz_bytes keys;
	struct top_fetch *fetch;
	struct top *top;
	unsigned how;

	answers = (struct fuzz_bytes){ data, len };
	how = (unsigned)fuzz_take_number(&answers, 1);
	keys.at = fuzz_take(&answers, 16, &keys.left);
	settings.key = (enum statistics_key)(how % (KEY_DOMAIN + 1));
	settings.most_recent_first = how & 8;
	MUST(varlink_client_open(SOCKET, &session.client) == 0);
	top = top_new(&settings);
	fetch = top_fetch_new(&session, 1, NSEC_PER_SEC, how & 16);
	MUST(top && fetch);
	top_resize(top, how & 32 ? 20 : 90, how & 64 ? 5 : 24);
	watch(top, fetch, &keys);
	top_fetch_free(fetch);
	top_free(top);
	varlink_client_close(session.client);
	close_peers();
}

/* --- changes that leave what the daemon says JSON --- */

#define REPLY "{\"parameters\":{}}"

static uint8_t *fuzz_client_restructure(const uint8_t *data, size_t len, size_t *ret_len)
{
	return fuzz_change_message(data, len, 1, fuzz_change_json, REPLY, ret_len);
}

static uint8_t *fuzz_top_restructure(const uint8_t *data, size_t len, size_t *ret_len)
{
	return fuzz_change_message(data, len, 17, fuzz_change_json, REPLY, ret_len);
}

const struct fuzz_target fuzz_targets[] = {
	{ "client", fuzz_client_run, fuzz_client_restructure, { "heard", "shown", "a snapshot shown" } },
	{ "top", fuzz_top_run, fuzz_top_restructure, { "news", "figures" } },
	{ 0 }
};
