/* Both engines see the same: the stacks of programs that nobody here wrote, and what each has allocated in all, frame by frame
 * and byte by byte. */
#include "live.h"
#include "programs.h"
#include "subject.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#define FRAMES "60"

/* Programs whose tables are laid out by addresses do the same only where these are the same. */
static void fix_addresses(void)
{
	if (personality(ADDR_NO_RANDOMIZE) == -1)
		live_skip("addresses cannot be fixed: %s", strerror(errno));
}

static const char *exit_snapshot(struct tool *tool)
{
	json_t *list = json_object_get(tool_json(tool, "snapshots", NULL), "snapshots"), *info;
	const char *found = NULL;
	size_t i;

	json_array_foreach(list, i, info) {
		if (!strcmp(json_text(info, "name"), "exit"))
			found = json_text(info, "id");
	}
	if (!found)
		live_fail("no exit snapshot is kept");
	return found;
}

static json_t *stacks_of(struct tool *tool, const char *snapshot)
{
	json_t *stats = tool_json(tool, "stats", snapshot, "--by", "traceback", "--churn", "--show-runtime", NULL);

	require(json_is_true(json_object_get(stats, "exact")));
	require_equal(json_number(stats, "unknown.truncated_stacks"), 0);
	return json_object_get(stats, "statistics");
}

/* The command's, from its first instruction to its end; every word is kept. */
static json_t *stacks_of_run(const char *engine, const char *const *command)
{
	struct tool *tool = tool_start();
	const char *w[12] = { NULL };

	for (size_t i = 0; command[i]; i++) {
		require(i < sizeof(w) / sizeof(*w));
		w[i] = command[i];
	}
	tool_out(tool, "run", "--engine", engine, "--ring-wait", "10s", "--frames", FRAMES, "--", w[0], w[1], w[2], w[3], w[4],
		 w[5], w[6], w[7], w[8], w[9], w[10], w[11], NULL);
	return stacks_of(tool, exit_snapshot(tool));
}

/* --- comparing --- */

/* Most recent first, so that the beginning of a long one says most. */
static const char *stack_text(json_t *row)
{
	json_t *traceback = json_object_get(row, "traceback");
	char *text = NULL;
	size_t length;
	FILE *f = open_memstream(&text, &length);

	for (size_t i = json_array_size(traceback); i-- > 0;) {
		json_t *frame = json_array_get(traceback, i);
		const char *object = json_string_value(json_object_get(frame, "object"));
		const char *function = json_string_value(json_object_get(frame, "function"));

		fprintf(f, "%s(%s+%lld):%lld%s ", object && strrchr(object, '/') ? strrchr(object, '/') + 1 : "?",
			function ? function : "", json_number(frame, "offset"), json_number(frame, "line"),
			json_is_true(json_object_get(frame, "inlined")) ? "i" : "");
	}
	fclose(f);
	return text;
}

/* By traceback, what else a row says; temporary blocks depend on what other threads and timers do meanwhile. */
static json_t *by_traceback(json_t *rows)
{
	json_t *table = json_object(), *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		json_t *sums = json_deep_copy(row);

		json_object_del(sums, "traceback");
		json_object_del(sums, "temporary");
		json_object_set_new(table, stack_text(row), sums);
	}
	return table;
}

/* Whether one of these functions is in it, as its text has them. */
static bool may_differ(const char *traceback, const char *const *functions)
{
	for (; *functions; functions++) {
		if (strstr(traceback, live_text("(%s", *functions)))
			return true;
	}
	return false;
}

struct comparison {
	size_t same, different;        /* the different ones may be */
};

static struct comparison compare(json_t *some, json_t *others, const char *which, const char *const *differing)
{
	struct comparison found = { 0, 0 };
	const char *traceback;
	json_t *sums, *other;

	json_object_foreach(some, traceback, sums) {
		other = json_object_get(others, traceback);
		if (other && json_equal(sums, other))
			found.same++;
		else if (may_differ(traceback, differing))
			found.different++;
		else
			live_fail("only %s: %s: %s; the other: %s", which, json_dumps(sums, JSON_COMPACT), traceback,
				  other ? json_dumps(other, JSON_COMPACT) : "no such stack");
	}
	return found;
}

/* differing: functions, by their first letters, that do not do the same twice. */
static void require_alike(json_t *int3, json_t *ring, const char *const *differing, size_t least)
{
	json_t *a = by_traceback(int3), *b = by_traceback(ring);
	struct comparison there = compare(a, b, "int3", differing), back = compare(b, a, "ring", differing);

	live_note("%zu stacks with their sums the same, %zu and %zu of functions that do not do the same twice", there.same,
		  there.different, back.different);
	require_equal((long long)there.same, (long long)back.same);
	require_at_least((long long)there.same, (long long)least);
	require_at_least((long long)there.same, 5 * (long long)(there.different + back.different));
	json_decref(a);
	json_decref(b);
}

/* --- programs --- */

static const char *write_text(const char *name, const char *(*line)(unsigned int), unsigned int lines)
{
	const char *path = live_text("%s/%s", live_folder(), name);
	FILE *f = fopen(path, "w");

	if (!f)
		live_fail("%s: %s", path, strerror(errno));
	for (unsigned int i = 0; i < lines; i++)
		fputs(line(i), f);
	fclose(f);
	return path;
}

static const char *c_function(unsigned int i)
{
	return live_text("struct s%u { int a[%u]; long b; struct s%u *next; };\n"
			 "static inline long g%u(const struct s%u *s) { return s->b * %u + s->a[0]; }\n"
			 "long f%u(int a, const int *p, struct s%u *s)\n{\n\tlong sum = a;\n"
			 "\tfor (int i = 0; i < a; i++)\n\t\tsum += p[i] * %u + (s ? g%u(s) : i);\n"
			 "\tswitch (a & 7) {\n\tcase 1: return sum / 3;\n\tcase 4: return f%u(a - 1, p, s->next);\n"
			 "\tdefault: return sum > %u ? sum : -sum;\n\t}\n}\n", i, i + 1, i, i, i, i, i, i, i, i, i, i);
}

static void the_c_compiler(void)
{
	/* Its collector's table of pages is laid out by addresses, which our own mappings move; so are these of its sets. */
	static const char *const differing[] = { "ggc_", "back_threader", NULL };
	const char *source = write_text("source.c", c_function, live_rounds(4, 6));
	/* More passes have more stacks; more functions have more calls, which take int3 minutes. */
	const char *level = live_text("-O%u", live_rounds(1, 3));
	FILE *f = popen("gcc -print-prog-name=cc1", "r");
	char cc1[1024] = "";

	if (!f || !fgets(cc1, sizeof(cc1), f) || pclose(f))
		live_fail("gcc does not tell where its cc1 is");
	cc1[strcspn(cc1, "\n")] = '\0';
	fix_addresses();
	{
		const char *const command[] = { cc1, "-quiet", level, "-g", source, "-o", "/dev/null", NULL };

		require_alike(stacks_of_run("int3", command), stacks_of_run("ring", command), differing, live_rounds(3000, 6000));
	}
}

static const char *python_line(unsigned int i)
{
	static const char *const lines[] = {
		"import json, re, random, decimal, fractions, textwrap, string, collections, struct, csv, io, ast, difflib\n",
		"import unittest, email.message, http.client, xml.dom.minidom, argparse, logging, typing, dataclasses, asyncio\n",
		"random.seed(7)\n",
		"def nested(n): return [n, nested(n - 1)] if n else []\n",
		"def table(n):\n    return {'k%d' % random.randrange(n): [j * 1.5 for j in range(i % 30)] for i in range(n)}\n",
		"for k in range(4):\n    x = table(200); y = json.loads(json.dumps(x)); z = nested(k * 30 + 5)\n",
		"re.sub('(a+|b)*c?', 'b', 'caat' * 20); re.compile('|'.join(string.ascii_letters))\n",
		"ast.parse('\\n'.join('def f%d(a, b=%d): return [x for x in a if x > b]' % (i, i) for i in range(20)))\n",
		"list(difflib.unified_diff([str(i) for i in range(50)], [str(i * 2) for i in range(50)]))\n",
		"w = csv.writer(io.StringIO()); w.writerows([[i, 'a' * i] for i in range(40)])\n",
		"sum(decimal.Decimal(i) / 7 for i in range(1, 50)); fractions.Fraction(3, 7) ** 5\n",
		"textwrap.fill('word ' * 200)\n",
	};

	return i < sizeof(lines) / sizeof(*lines) ? lines[i] : "";
}

static void python3(void)
{
	static const char *const differing[] = { NULL };
	const char *script = write_text("script.py", python_line, 20);
	const char *const command[] = { "/usr/bin/python3", "-S", "-E", script, NULL };

	setenv("PYTHONMALLOC", "malloc", 1);
	setenv("PYTHONHASHSEED", "0", 1);
	setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
	fix_addresses();
	require_alike(stacks_of_run("int3", command), stacks_of_run("ring", command), differing, 1500);
}

/* Each with an answer of one line, and one at a time: what a client leaves unread is kept in pieces. */
static void ask_redis(struct program *redis, unsigned int i)
{
	const char *const commands[] = {
		live_text("SET k%u v%u\r\n", i, i),
		live_text("APPEND k%u %u\r\n", i, i),
		live_text("EXPIRE k%u 1000\r\n", i),
		live_text("LPUSH l%u x%u\r\n", i % 10, i),
		live_text("HSET h%u f%u %u\r\n", i % 7, i, i),
		live_text("SADD s%u m%u\r\n", i % 3, i),
		live_text("SREM s%u m%u\r\n", (i + 2) % 3, i / 2),
		live_text("ZADD z %u m%u\r\n", i, i),
		live_text("XADD x%u %u-1 f %u\r\n", i % 4, i + 1, i),
		live_text("PFADD p%u %u\r\n", i % 5, i),
		live_text("SETBIT b%u %u 1\r\n", i % 6, i * 64),
		live_text("EVAL \"return redis.call('incr','n')\" 0\r\n"),
		live_text("SORT l%u ALPHA STORE sorted\r\n", i % 10),
		live_text("RENAME k%u r%u\r\n", i, i),
		live_text("DEL r%u\r\n", i / 2),
		live_text("MULTI\r\n"), live_text("INCR n\r\n"), live_text("DISCARD\r\n"),
	};

	for (size_t c = 0; c < sizeof(commands) / sizeof(*commands); c++) {
		/* The line before the answer of XADD says how long that is. */
		int lines = strncmp(commands[c], "XADD", 4) ? 1 : 2;

		program_send(redis->connection, commands[c], strlen(commands[c]));
		program_expect_lines(redis->connection, lines);
	}
}

static json_t *stacks_of_redis(const char *engine, unsigned int rounds)
{
	struct program redis = { .socket = live_text("%s/redis-%s", live_folder(), engine) };
	struct tool *tool = tool_start();
	json_t *stacks;

	program_start_redis(&redis, geteuid());
	program_set_key(&redis, 1, 100);           /* everything is up */
	tool_out(tool, "attach", pid_text(redis.subject->pid), "--engine", engine, "--ring-wait", "10s", "--frames", FRAMES, NULL);
	for (unsigned int i = 0; i < rounds; i++)
		ask_redis(&redis, i);
	stacks = stacks_of(tool, json_text(tool_json(tool, "snapshot", pid_text(redis.subject->pid), NULL), "id"));
	tool_detach(tool, redis.subject->pid);
	subject_kill(redis.subject);
	return stacks;
}

static void redis(void)
{
	/* By its clock, or by chance (a skip list's levels). */
	static const char *const differing[] = { "slowlog", "serverCron", "beforeSleep", "zslInsert", NULL };
	unsigned int rounds = live_rounds(150, 1000);

	fix_addresses();
	require_alike(stacks_of_redis("int3", rounds), stacks_of_redis("ring", rounds), differing, 100);
}

static const struct live_case cases[] = {
	LIVE_CASE(the_c_compiler),
	LIVE_CASE(python3),
	LIVE_CASE(redis),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
