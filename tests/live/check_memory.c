/* What status says of the tracer's memory, and what the tracer has: an allocator that counts is preloaded into it
 * (counter.c).  Its own tables are told to the byte; the rest is what libraries keep, about the objects of the target. */
#include "counter.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* For a target with few objects. */
#define LIBRARIES_MOST 49152
#define LOOKS 10
#define LOOKS_MOST 1000

static struct counter *counter;

/* A tracer that is started with the counter in it. */
static const char *make_tracer(void)
{
	const char *path = live_text("%s/counter", live_folder()), *script = live_text("%s/tracer", live_folder());
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fopen(script, "w");

	if (fd < 0 || ftruncate(fd, sizeof(struct counter)) || !file)
		live_fail("%s: %s", path, strerror(errno));
	counter = mmap(NULL, sizeof(struct counter), PROT_READ, MAP_SHARED, fd, 0);
	if (counter == MAP_FAILED)
		live_fail("%s: %s", path, strerror(errno));
	close(fd);
	fprintf(file, "#!/bin/sh\nexec env COUNTER_FILE=%s LD_PRELOAD=%s/tests/live/counter.so %s/src/allocwatch-tracer \"$@\"\n",
		path, live_build(), live_build());
	fclose(file);
	if (chmod(script, 0700))
		live_fail("%s: %s", script, strerror(errno));
	return script;
}

struct traced {
	struct tool *tool;
	struct subject *subject;
	struct state *before;
	long rest;                      /* what libraries keep */
	long long said;
	unsigned comparisons;
};

static struct traced trace(struct subject *subject)
{
	struct traced traced = { .tool = tool_start_system("--tracer", make_tracer()), .subject = subject,
				 .before = state_take(subject->pid) };

	tool_attach(traced.tool, subject->pid);
	return traced;
}

static bool is_the_same(void *context)
{
	struct traced *traced = context;

	traced->said = json_number(tool_status(traced->tool, traced->subject->pid), "tracer_memory");
	return counter->bytes - traced->said == traced->rest;
}

/* An end of a thread may still be on its way to the tracer, and a message on its way out of it. */
static void compare(struct traced *traced, const char *when)
{
	if (!live_wait(is_the_same, traced, 10000))
		live_fail("%s: status says %lld bytes, the tracer has %ld: %+lld are not told", when, traced->said,
			  counter->bytes, counter->bytes - traced->said - traced->rest);
	traced->comparisons++;
}

/* What libraries keep now: the least of some looks, since messages come and go, in which nothing else did, as the end of a thread. */
static long libraries_part(struct traced *traced)
{
	unsigned looks = 0;
	long least = 0;

	traced->rest = -1;
	for (int i = 0; i < LOOKS_MOST && looks < LOOKS; i++) {
		long before = counter->bytes;

		is_the_same(traced);
		if (counter->bytes != before)
			continue;
		if (looks++ == 0 || before - traced->said < least)
			least = before - traced->said;
	}
	require_at_least(looks, 1);
	live_note("status says %lld bytes, the tracer has %ld: %ld are the libraries'", traced->said,
		  (long)traced->said + least, least);
	return least;
}

static void end(struct traced *traced, long most)
{
	live_note("%u comparisons, the last of %lld bytes", traced->comparisons, traced->said);
	require_at_least(traced->comparisons, 1);
	require_at_least(most, traced->rest);
	tool_end(traced->tool, traced->subject, traced->before);
}

static void command(struct traced *traced, char command)
{
	subject_command(traced->subject, command);
	compare(traced, live_text("after '%c'", command));
}

static void what_status_says_is_what_tables_of_blocks_and_stacks_have(void)
{
	struct subject *subject = victim_start("tests/victims/grower", NULL);
	unsigned rounds = live_rounds(4, 400);
	struct traced traced;
	long long full, empty;

	subject_command(subject, 't');
	subject_command(subject, '0');
	traced = trace(subject);
	subject_command(subject, 'g');
	traced.rest = libraries_part(&traced);
	for (unsigned i = 0; i < rounds; i++)
		command(&traced, "ggrt"[i % 4]);
	full = traced.said;
	tool_out(traced.tool, "reset-peak", pid_text(subject->pid), NULL);
	compare(&traced, "after reset-peak");
	command(&traced, 'f');
	tool_out(traced.tool, "clear", pid_text(subject->pid), NULL);
	compare(&traced, "after clear");
	command(&traced, '0');
	empty = traced.said;
	command(&traced, 'r');
	command(&traced, 'g');
	live_note("%lld bytes with all blocks, %lld without any", full, empty);
	require_at_least(full, empty + 1);
	end(&traced, LIBRARIES_MOST);
}

static void what_status_says_is_what_tables_of_threads_have(void)
{
	struct subject *subject = victim_start("tests/victims/births", NULL);
	unsigned rounds = live_rounds(1, 60);
	struct traced traced;

	subject_command(subject, 'g');
	traced = trace(subject);
	subject_command(subject, 'g');
	traced.rest = libraries_part(&traced);
	for (unsigned i = 0; i < rounds; i++)
		command(&traced, 'g');
	end(&traced, LIBRARIES_MOST);
}

/* Libraries keep something of each object that is there: with the plugin, and without it. */
static void what_status_says_is_what_tables_of_objects_have(void)
{
	struct subject *subject = victim_start("tests/victims/plugins", live_text("%s/tests/victims", live_build()), NULL);
	unsigned rounds = live_rounds(4, 200);
	struct traced traced;
	long with, without;

	subject_command(subject, 'O');
	traced = trace(subject);
	for (const char *c = "ogcG"; *c; c++)
		subject_command(subject, *c);
	subject_command(traced.subject, 'o');
	subject_command(traced.subject, 'g');
	with = libraries_part(&traced);
	subject_command(traced.subject, 'c');
	without = libraries_part(&traced);
	for (unsigned i = 0; i < rounds; i++) {
		traced.rest = with;
		command(&traced, 'o');
		command(&traced, 'g');
		traced.rest = without;
		command(&traced, 'c');
	}
	end(&traced, LIBRARIES_MOST);
}

static const struct live_case cases[] = {
	LIVE_CASE(what_status_says_is_what_tables_of_blocks_and_stacks_have),
	LIVE_CASE(what_status_says_is_what_tables_of_threads_have),
	LIVE_CASE(what_status_says_is_what_tables_of_objects_have),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
