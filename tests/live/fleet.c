#include "fleet.h"

#include "live.h"
#include "programs.h"
#include "subject.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIGNALS 40
#define KEYS 200
#define VALUE_MOST 4000
#define PAGE_LINES 3000
#define ANSWER_MS 60000
#define ANSWER_MOST (VALUE_MOST + 32)

static const char *const outcome_names[OUTCOMES] = { "lived", "missed", "a wait broken off", "unsafe", "leftovers", "corrupt", "dead" };
const struct outcomes chaos_outcomes = { outcome_names, OUTCOMES };

static struct subject *target;
static size_t answers_due;
static int signals_sent;

/* --- servers, and who asks them --- */

struct asking {
	atomic_bool ends;
	atomic_long asked, wrong;
};

static struct asking *asking;
static pid_t asker;
static struct program server;
static char page[PAGE_LINES * 8 + 1];

/* So many bytes, or fewer when the connection is closed before. */
static size_t receive(int connection, char *data, size_t len)
{
	struct pollfd pollfd = { .fd = connection, .events = POLLIN };
	size_t had = 0;

	while (had < len) {
		ssize_t n;

		if (poll(&pollfd, 1, ANSWER_MS) != 1)
			live_fail("no answer to a request");
		n = recv(connection, data + had, len - had, 0);
		if (n < 0)
			live_fail("the connection is broken: %s", strerror(errno));
		if (n == 0)
			break;
		had += (size_t)n;
	}
	return had;
}

/* It listens before it has set all its signals; then it answers. */
static void serve_redis(void)
{
	server.socket = live_text("%s/redis-%d", live_folder(), getpid());
	program_start_redis(&server, geteuid());
	program_set_key(&server, KEYS, 1);
	target = server.subject;
}

static void expect(const char *wanted, size_t len)
{
	char answer[ANSWER_MOST];

	if (receive(server.connection, answer, len) == len && memcmp(answer, wanted, len) == 0)
		return;
	/* What comes next could not be told from what came late. */
	atomic_fetch_add(&asking->wrong, 1);
	_exit(1);
}

/* A value's length and text are its key's and its turn's. */
static int make_value(char value[VALUE_MOST + 1], unsigned key, long turn)
{
	int len = (int)((key * 37 + (unsigned long)turn * 101) % VALUE_MOST) + 1;

	for (int i = 0; i < len; i++)
		value[i] = (char)('a' + (key + (unsigned long)turn + (unsigned)i * 7) % 26);
	value[len] = '\0';
	return len;
}

static void ask_redis(void)
{
	static long turns[KEYS];
	char value[VALUE_MOST + 1], text[ANSWER_MOST + 32];
	unsigned key = (unsigned)(random() % KEYS);
	int len = make_value(value, key, ++turns[key]), n;

	n = snprintf(text, sizeof(text), "SET key:%u %s\r\n", key, value);
	program_send(server.connection, text, (size_t)n);
	expect("+OK\r\n", 5);
	key = (unsigned)(random() % KEYS);
	n = snprintf(text, sizeof(text), "GET key:%u\r\n", key);
	program_send(server.connection, text, (size_t)n);
	len = make_value(value, key, turns[key]);
	n = turns[key] == 0 ? snprintf(text, sizeof(text), "$-1\r\n") :
			      snprintf(text, sizeof(text), "$%d\r\n%s\r\n", len, value);
	expect(text, (size_t)n);
}

static void serve_nginx(void)
{
	const char *file = live_text("%s/index.html", live_folder());
	FILE *f;

	server.socket = live_text("%s/nginx-%d", live_folder(), getpid());
	program_start_nginx(&server);
	program_get_page(server.connection);
	for (unsigned i = 0; i < PAGE_LINES; i++)
		snprintf(page + i * 8, 9, "%07u\n", i * 3);
	f = fopen(file, "w");
	if (!f)
		live_fail("%s: %s", file, strerror(errno));
	fputs(page, f);
	fclose(f);
	target = server.subject;
}

static void ask_nginx(void)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	static const char status[] = "HTTP/1.1 200 ";
	static char answer[sizeof(page) + 4096];
	size_t len, page_len = sizeof(page) - 1;
	int fd = program_connect(server.socket);

	program_send(fd, request, sizeof(request) - 1);
	len = receive(fd, answer, sizeof(answer));
	close(fd);
	if (len < page_len || memcmp(answer, status, sizeof(status) - 1) != 0 ||
	    memcmp(answer + len - page_len, page, page_len) != 0)
		atomic_fetch_add(&asking->wrong, 1);
}

static void begin_asking(const struct kind *kind)
{
	asking = mmap(NULL, sizeof(*asking), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (asking == MAP_FAILED)
		live_fail("no memory: %s", strerror(errno));
	fflush(stdout);
	asker = fork();
	if (asker < 0)
		live_fail("fork: %s", strerror(errno));
	if (asker > 0)
		return;
	while (!atomic_load(&asking->ends)) {
		kind->ask();
		atomic_fetch_add(&asking->asked, 1);
	}
	_exit(0);
}

static void judge_answers(void)
{
	long before = atomic_load(&asking->asked);
	int status;

	/* One that is asked and answers now does so as it did before. */
	while (atomic_load(&asking->asked) < before + 2 && waitpid(asker, &status, WNOHANG) == 0)
		live_let_pass(1000000);
	atomic_store(&asking->ends, true);
	if (atomic_load(&asking->asked) >= before + 2 && waitpid(asker, &status, 0) != asker)
		status = -1;
	if (atomic_load(&asking->wrong) > 0)
		round_end(&chaos_outcomes, CORRUPT, "%ld of %ld answers were wrong", atomic_load(&asking->wrong),
			  atomic_load(&asking->asked));
	if (status != 0)
		round_end(&chaos_outcomes, DEAD, "it does not answer any more");
}

/* --- the kinds --- */

#define HAMMER(...) { "tests/victims/hammer", __VA_ARGS__ }

const struct kind fleet[] = {
	{ .name = "1 thread", .argv = HAMMER("--threads", "1", "--ops", "100"), .start = "r", .end = "s",
	  .zero = { "wrong" } },
	{ .name = "4 threads", .argv = HAMMER("--threads", "4", "--ops", "100"), .start = "r", .end = "s",
	  .zero = { "wrong" } },
	{ .name = "16 threads", .argv = HAMMER("--threads", "16", "--ops", "100"), .start = "r", .end = "s",
	  .zero = { "wrong" } },
	{ .name = "threads that block all signals", .argv = HAMMER("--threads", "4", "--ops", "100", "--block-signals"),
	  .start = "r", .end = "s", .zero = { "wrong" } },
	{ .name = "no new code", .argv = HAMMER("--threads", "4", "--ops", "100", "--no-new-code"), .start = "r",
	  .end = "s", .zero = { "wrong" } },
	{ .name = "registers", .argv = { "tests/victims/registers", "tests/victims" }, .start = "r", .end = "g",
	  .zero = { "wrong" } },
	{ .name = "numbered signals", .argv = { "tests/victims/rtsignals" }, .end = "g", .zero = { "bad" },
	  .signals = true },
	{ .name = "births of threads", .argv = { "tests/victims/births" }, .start = "r", .end = "s" },
	{ .name = "forks", .argv = { "tests/victims/forktree" }, .start = "gg", .answers = true, .end = "g",
	  .zero = { "bad" } },
	{ .name = "children that stay", .argv = { "tests/victims/forker" }, .start = "g", .answers = true, .end = "g",
	  .zero = { "bad" } },
	{ .name = "children of each kind", .argv = { "tests/victims/forks", "--blind", "--threads", "1", "--storm", "20" }, .start = "gs",
	  .answers = true, .end = "g", .zero = { "bad" }, .other_actions = true },
	{ .name = "vfork, posix_spawn, system", .argv = { "tests/victims/spawner" }, .start = "g", .answers = true,
	  .end = "g", .zero = { "bad" }, .other_actions = true },
	{ .name = "waits in the kernel", .argv = { "tests/victims/waiters" }, .end = "w", .waits = true,
	  .unstoppable = true },
	{ .name = "a handler at 1 kHz", .argv = { "tests/victims/ticker" }, .start = "g", .answers = true, .end = "g",
	  .zero = { "stray" } },
	{ .name = "a SIGTRAP handler of its own", .argv = { "tests/victims/trapper" }, .start = "g", .answers = true,
	  .end = "g", .equal = { "raised", "caught" }, .other_actions = true },
	{ .name = "a seccomp filter", .argv = { "tests/victims/filtered" }, .start = "gg", .answers = true, .end = "g",
	  .filtered = true },
	{ .name = "exec", .argv = { "tests/victims/execer" }, .start = "gg", .answers = true, .end = "a",
	  .other_actions = true },
	{ .name = "redis", .serve = serve_redis, .ask = ask_redis },
	{ .name = "nginx", .serve = serve_nginx, .ask = ask_nginx },
	{ .name = "python3", .start = "gg", .answers = true, .end = "g", .zero = { "bad" } },
};

const size_t fleet_count = sizeof(fleet) / sizeof(fleet[0]);

/* A round of work has one result, whatever happens to the process. */
static const char python_script[] =
	"import hashlib, json, os, re, sys, zlib\n"
	"def work():\n"
	"    d = {str(k): [k * 1.5] * (k % 40) for k in range(40)}\n"
	"    t = json.dumps(d, indent=1)\n"
	"    assert json.loads(t) == d\n"
	"    b = bytes(bytearray(re.sub('[13579]', 'x', t).encode()) * 5)\n"
	"    return hashlib.sha256(zlib.decompress(zlib.compress(b, 1))).hexdigest()\n"
	"good = work()\n"
	"rounds = bad = 0\n"
	"os.write(1, b'R\\n')\n"
	"while True:\n"
	"    c = os.read(0, 1)\n"
	"    if not c or c == b'q': os._exit(0)\n"
	"    for _ in range(2):\n"
	"        rounds += 1\n"
	"        bad += work() != good\n"
	"    os.write(1, b'rounds=%d bad=%d\\n' % (rounds, bad))\n";

static void start_python(void)
{
	program_start_python(&server, python_script);
	target = server.subject;
}

static void start_victim(const struct kind *kind)
{
	const char *second = kind->argv[1] && kind->argv[1][0] == 't' ?
			     live_text("%s/%s", live_build(), kind->argv[1]) : kind->argv[1];

	target = victim_start(kind->argv[0], second, kind->argv[2], kind->argv[3], kind->argv[4], kind->argv[5], NULL);
}

pid_t fleet_start(const struct kind *kind)
{
	if (kind->serve)
		kind->serve();
	else if (kind->argv[0])
		start_victim(kind);
	else
		start_python();
	return target->pid;
}

static void send_signals(void)
{
	for (unsigned i = 0; i < SIGNALS; i++) {
		union sigval value = { .sival_int = signals_sent };

		if (sigqueue(target->pid, SIGRTMIN + 1, value) < 0)
			return;
		signals_sent++;
	}
}

void fleet_work(const struct kind *kind)
{
	static bool begun;

	if (kind->ask && !begun)
		begin_asking(kind);
	if (kind->signals)
		send_signals();
	for (const char *c = kind->start; c && *c && (kind->answers || !begun); c++) {
		subject_send(target, *c);
		answers_due += kind->answers;
	}
	begun = true;
}

void fleet_require_alive(const char *when)
{
	int status;

	if (waitpid(target->pid, &status, WNOHANG) == target->pid)
		round_end(&chaos_outcomes, DEAD, "%s: wait status 0x%x", when, (unsigned)status);
}

static void check_zeros(const struct kind *kind)
{
	for (size_t i = 0; i < 3 && kind->zero[i]; i++) {
		if (strstr(target->line, live_text("%s=", kind->zero[i])) && subject_tally(target, kind->zero[i]) != 0)
			round_end(&chaos_outcomes, CORRUPT, "it says: %s", target->line);
	}
}

static long judge_tallies(const struct kind *kind)
{
	for (; answers_due > 0; answers_due--) {
		subject_line(target);
		check_zeros(kind);
	}
	for (const char *c = kind->end; *c; c++)
		subject_send(target, *c);
	subject_line(target);
	for (size_t i = 0; i < 3 && kind->zero[i]; i++)
		subject_tally(target, kind->zero[i]);
	check_zeros(kind);
	if (kind->equal[0] && subject_tally(target, kind->equal[0]) != subject_tally(target, kind->equal[1]))
		round_end(&chaos_outcomes, CORRUPT, "it says: %s", target->line);
	if (kind->signals && subject_tally(target, "received") != signals_sent)
		round_end(&chaos_outcomes, CORRUPT, "%d signals were sent, and it says: %s", signals_sent, target->line);
	return kind->waits ? subject_tally(target, "broken") : 0;
}

void fleet_judge(const struct kind *kind)
{
	long broken = 0;
	int status;

	fleet_require_alive("while it was traced");
	if (kind->serve) {
		judge_answers();
		kill(target->pid, SIGTERM);
	} else {
		broken = judge_tallies(kind);
		subject_send(target, 'q');
	}
	status = subject_wait(target);
	if (status != 0)
		round_end(&chaos_outcomes, DEAD, "at its end: wait status 0x%x", (unsigned)status);
	if (broken > 0)
		round_end(&chaos_outcomes, BROKEN_OFF, "%ld of its waits", broken);
}
