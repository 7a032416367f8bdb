/* Code that a process makes while it runs: stacks go through it, and it has the names that the process tells. */
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define JITTED "tests/victims/jitted"
#define NODE "/usr/bin/node"
#define READER "tests/live/generated_names.py"
#define START_MS 20000

static const char *tracebacks(struct tool *tool, const char *snap)
{
	return tool_out(tool, "stats", snap, "--by", "traceback", NULL);
}

static const char *map_of(pid_t pid)
{
	return live_text("/tmp/perf-%d.map", pid);
}

static void require_no_text(const char *text, const char *unwanted)
{
	if (strstr(text, unwanted))
		live_fail("'%s' is in: %s", unwanted, text);
}

static void generated_code_has_the_name_that_it_tells(void)
{
	struct tool *tool = tool_start();
	struct subject *jitted = victim_start(JITTED, NULL);
	struct state *before;
	const char *text;

	before = state_take(jitted->pid);
	tool_attach(tool, jitted->pid);
	subject_command(jitted, 'g');
	/* Nothing is told yet: a whole stack all the same. */
	text = tracebacks(tool, pid_text(jitted->pid));
	require_text(text, "jitted.c\", line ");
	require_text(text, "File \"[unknown](+0x");
	require_equal(json_number(tool_status(tool, jitted->pid), "unknown.truncated_stacks"), 0);
	subject_command(jitted, 'm');
	require_text(tracebacks(tool, pid_text(jitted->pid)), "File \"[unknown](made_code+0xc)\"");
	subject_command(jitted, 'n');
	text = tracebacks(tool, pid_text(jitted->pid));
	require_text(text, "File \"[unknown](newer code+0xc)\"");
	require_no_text(text, "made_code");
	tool_end(tool, jitted, before);
	remove(map_of(jitted->pid));
}

/* Its folder in /proc is gone, and the file is still there. */
static void the_last_snapshot_of_one_that_has_ended_has_them_too(void)
{
	struct tool *tool = tool_start();
	struct subject *jitted = victim_start(JITTED, NULL);
	pid_t pid = jitted->pid;

	tool_attach(tool, pid);
	subject_command(jitted, 'g');
	subject_command(jitted, 'm');
	subject_quit(jitted);
	require_text(tracebacks(tool, live_text("%d:exit", pid)), "made_code+0xc");
	remove(map_of(pid));
}

static void a_jitdump_tells_the_source_line(void)
{
	struct tool *tool = tool_start();
	struct subject *jitted = victim_start(JITTED, live_folder(), NULL);
	struct state *before;

	subject_command(jitted, 'd');
	before = state_take(jitted->pid);
	tool_attach(tool, jitted->pid);
	subject_command(jitted, 'g');
	require_text(tracebacks(tool, pid_text(jitted->pid)), "File \"/made/up.src\", line 42\n");
	require_text(tool_out(tool, "stats", pid_text(jitted->pid), "--by", "function", NULL), "dumped_code: size=104 B");
	tool_end(tool, jitted, before);
}

static bool has_child(void *context)
{
	pid_t *pids = context;
	FILE *file = fopen(live_text("/proc/%d/task/%d/children", pids[0], pids[0]), "r");
	bool has = file && fscanf(file, "%d", &pids[1]) == 1;

	if (file)
		fclose(file);
	return has;
}

/* It calls itself 1, and its /tmp is nobody else's. */
static void in_its_own_namespaces_a_process_is_found(void)
{
	const char *script = live_text("cp %s/%s %s/jitted && mount --bind %s /tmp && exec /tmp/jitted", live_build(), JITTED,
				       live_folder(), live_folder());
	const char *argv[] = { "unshare", "--pid", "--fork", "--mount", "sh", "-c", script, NULL };
	struct subject *jitted;
	struct tool *tool;
	pid_t pids[2];

	if (geteuid())
		live_skip("needs root, to make namespaces");
	tool = tool_start();
	jitted = subject_start(0, argv);
	require_text(subject_line(jitted), "R");
	pids[0] = jitted->pid;
	require(live_wait(has_child, pids, START_MS));
	tool_attach(tool, pids[1]);
	subject_command(jitted, 'g');
	subject_command(jitted, 'm');
	require(access(live_text("%s/perf-1.map", live_folder()), F_OK) == 0);
	require_text(tracebacks(tool, pid_text(pids[1])), "made_code+0xc");
	tool_detach(tool, pids[1]);
	require_unharmed(pids[1], NULL);
	subject_quit(jitted);
}

/* What the owner of the session may not read is not read for them, nor is what somebody else has put there. */
static void a_map_is_read_with_the_owners_rights(void)
{
	struct subject *jitted;
	struct tool *tool;
	const char *map;

	if (geteuid())
		live_skip("needs root, to be others");
	tool = tool_of_user(tool_start_system(NULL, NULL), ORDINARY_UID);
	jitted = victim_start_ordinary(JITTED, NULL);
	map = map_of(jitted->pid);
	tool_attach(tool, jitted->pid);
	subject_command(jitted, 'g');
	subject_command(jitted, 'm');
	require(chown(map, 0, 0) == 0 && chmod(map, 0600) == 0);
	require_text(tracebacks(tool, pid_text(jitted->pid)), "File \"[unknown](+0x");
	require(chown(map, ORDINARY_UID + 1, 0) == 0 && chmod(map, 0644) == 0);
	require_text(tracebacks(tool, pid_text(jitted->pid)), "File \"[unknown](+0x");
	require(chown(map, ORDINARY_UID, 0) == 0);
	require_text(tracebacks(tool, pid_text(jitted->pid)), "made_code+0xc");
	tool_end(tool, jitted, NULL);
	remove(map);
}

/* --- Node --- */

static const char script[] =
	"function keep_one(n) { return Buffer.alloc(n, 1); }"
	"function keep_many(all) { for (let i = 0; i < 40; i++) all.push(keep_one(65536 + i)); return all; }"
	"let all = []; for (let i = 0; i < 2000; i++) all = keep_many([]);"
	"console.log('R');"
	"process.stdin.on('data', (d) => { if (String(d)[0] == 'q') process.exit(0); all = keep_many(all); console.log('done'); });";

/* Every frame in code without an object has the name that another reader finds in the map at its address. */
static void nodes_functions_have_the_names_that_a_foreign_reader_finds(void)
{
	const char *argv[] = { NODE, "--perf-basic-prof", "-e", script, NULL };
	const char *file = live_text("%s/node.aw", live_folder()), *text;
	struct tool *tool = tool_start();
	struct subject *node = subject_start(geteuid(), argv);
	pid_t pid = node->pid;

	require_text(subject_line(node), "R");
	tool_attach(tool, pid);
	for (int i = 0; i < 5; i++)
		subject_command(node, 'g');
	/* At rest: what is compiled meanwhile would be in one reading only. */
	text = tracebacks(tool, pid_text(pid));
	require_text(text, "keep_many");
	tool_out(tool, "dump", pid_text(pid), file, NULL);
	require_equal(system(live_text("python3 %s/%s %s %s", SOURCE_FOLDER, READER, file, map_of(pid))), 0);
	tool_detach(tool, pid);
	require_unharmed(pid, NULL);
	subject_send(node, 'q');
	require_equal(subject_wait(node), 0);
	remove(map_of(pid));
}

static const struct live_case cases[] = {
	LIVE_CASE(generated_code_has_the_name_that_it_tells),
	LIVE_CASE(the_last_snapshot_of_one_that_has_ended_has_them_too),
	LIVE_CASE(a_jitdump_tells_the_source_line),
	LIVE_CASE(in_its_own_namespaces_a_process_is_found),
	LIVE_CASE(a_map_is_read_with_the_owners_rights),
	LIVE_CASE(nodes_functions_have_the_names_that_a_foreign_reader_finds),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
