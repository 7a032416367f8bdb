/* Blocks by their addresses and ages; what lives and what was the most, since a clear and a reset of the peak. */
#include "client.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"

#include <signal.h>

static int add_blocks(void *all, json_t *reply)
{
	return json_array_extend(all, json_object_get(json_object_get(reply, "tables"), "blocks"));
}

static json_t *all_blocks(struct varlink_client *client, pid_t pid)
{
	json_t *parameters = json_pack("{s:s, s:b}", "snapshot", pid_text(pid), "blocks", 1), *error = NULL;
	json_t *all = json_array();

	require_equal(varlink_client_stream(client, "GetSnapshot", parameters, add_blocks, all, &error), 0);
	json_decref(parameters);
	return all;
}

static uint64_t half(json_t *row, size_t column)
{
	return (uint64_t)json_integer_value(json_array_get(row, column));
}

static json_t *find(struct varlink_client *client, pid_t pid, uint64_t address)
{
	json_t *reply = client_call(client, "FindBlock", json_pack("{s:i, s:s}", "pid", (int)pid, "address",
							    live_text("0x%llx", (unsigned long long)address)), NULL);

	require(reply != NULL);
	return json_object_get(reply, "blocks");
}

static void require_figures(struct tool *tool, pid_t pid, long long current, long long peak, long long blocks)
{
	json_t *status = tool_status(tool, pid);

	require_equal(json_number(status, "traced_current"), current);
	require_equal(json_number(status, "traced_peak"), peak);
	require_equal(json_number(status, "blocks"), blocks);
}

/* A command keeps a block of 72 bytes, when one of 3000 has gone again. */
static void current_and_peak_are_those_since_clear_and_reset_peak(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/turnover", NULL);
	struct state *before = state_take(subject->pid);
	struct varlink_client *client = client_of(tool);
	const char *pid = pid_text(subject->pid);
	uint64_t address;
	json_t *row;

	tool_attach(tool, subject->pid);
	subject_command(subject, 'g');
	subject_command(subject, 'g');
	require_figures(tool, subject->pid, 144, 3144, 2);
	tool_out(tool, "reset-peak", pid, NULL);
	require_figures(tool, subject->pid, 144, 144, 2);
	row = json_array_get(all_blocks(client, subject->pid), 0);
	address = half(row, 0) << 32 | half(row, 1);
	require_equal((long long)json_array_size(find(client, subject->pid, address + 71)), 1);
	tool_out(tool, "clear", pid, NULL);
	require_figures(tool, subject->pid, 0, 0, 0);
	require_equal((long long)json_array_size(find(client, subject->pid, address + 71)), 0);
	require_equal(json_number(tool_stats(tool, pid), "total.count"), 0);
	subject_command(subject, 'f');
	require_equal(json_number(tool_status(tool, subject->pid), "unknown.after_clear_frees"), 1);
	require_figures(tool, subject->pid, 0, 0, 0);
	subject_command(subject, 'g');
	require_figures(tool, subject->pid, 72, 3072, 1);
	subject_command(subject, 'f');
	subject_command(subject, 'f');
	require_figures(tool, subject->pid, 0, 3072, 0);
	require_equal(json_number(tool_status(tool, subject->pid), "unknown.after_clear_frees"), 2);
	tool_out(tool, "reset-peak", pid, NULL);
	require_figures(tool, subject->pid, 0, 0, 0);
	require_equal(json_number(tool_status(tool, subject->pid), "unknown.unknown_frees"), 0);
	varlink_client_close(client);
	tool_end(tool, subject, before);
}

/* Snapshots follow each other here faster than births are dated: nothing is older than the target for that. */
static void blocks_are_found_by_each_of_their_bytes_and_are_as_old_as_they_are(void)
{
	struct tool *tool = tool_start_system("--max-memory", "1");
	struct subject *subject = victim_start("tests/victims/turnover", NULL);
	struct state *before = state_take(subject->pid);
	struct varlink_client *client = client_of(tool);
	uint64_t began = clock_monotonic_ns();
	unsigned rounds = live_rounds(6, 200), found = 0;
	json_t *all, *row;
	size_t i;

	tool_attach(tool, subject->pid);
	for (unsigned round = 0; round < rounds; round++) {
		for (int k = 0; k < 3; k++)     /* whether there is room for it or not */
			json_decref(client_call(client, "TakeSnapshot", json_pack("{s:i}", "pid", (int)subject->pid), NULL));
		subject_command(subject, 'g');
		all = all_blocks(client, subject->pid);
		require_equal((long long)json_array_size(all), (long long)round + 1);
		json_array_foreach(all, i, row) {
			uint64_t address = half(row, 0) << 32 | half(row, 1), size = half(row, 2);
			const uint64_t inside[] = { address, address + 1, address + size / 2, address + size - 1 };

			require_equal((long long)size, 72);
			if (i + 3 < json_array_size(all))
				continue;
			for (size_t k = 0; k < sizeof(inside) / sizeof(inside[0]); k++) {
				json_t *blocks = find(client, subject->pid, inside[k]);
				double age = json_number_value(json_object_get(json_array_get(blocks, 0), "age_seconds"));

				require_equal((long long)json_array_size(blocks), 1);
				require_text(json_text(json_array_get(blocks, 0), "address"),
					     live_text("0x%llx", (unsigned long long)address));
				require(age >= 0 && age <= (double)(clock_monotonic_ns() - began) / 1e9);
				found++;
			}
			require_equal((long long)json_array_size(find(client, subject->pid, address + size)), 0);
			require_equal((long long)json_array_size(find(client, subject->pid, address - 1)), 0);
		}
		json_decref(all);
	}
	live_note("%u blocks found by an address, beside %u snapshots", found, 3 * rounds);
	require_at_least(found, (long long)rounds * 4);
	varlink_client_close(client);
	tool_end(tool, subject, before);
}

/* A record says when it was written, also when it is read long after. */
#define LAG_NS (400 * NSEC_PER_MSEC)
#define ROUNDED_NS (20 * NSEC_PER_MSEC)

static void a_block_is_as_old_as_it_is_when_its_tracer_was_late(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/turnover", NULL);
	struct state *before = state_take(subject->pid);
	struct varlink_client *client = client_of(tool);
	uint64_t begun_ns, made_ns, asked_ns, answered_ns, age_ns, address;
	pid_t tracer, daemon = tool_daemon(tool);
	json_t *row, *found;

	tool_out(tool, "attach", "--engine", "ring", pid_text(subject->pid), NULL);
	require_text(json_text(tool_status(tool, subject->pid), "engine"), "ring");
	tracer = tool_tracer(subject->pid);
	/* The daemon would take a tracer that is stopped for stuck. */
	require(kill(daemon, SIGSTOP) == 0 && kill(tracer, SIGSTOP) == 0);
	begun_ns = clock_monotonic_ns();
	subject_command(subject, 'g');
	made_ns = clock_monotonic_ns();
	live_let_pass(LAG_NS);
	require(kill(tracer, SIGCONT) == 0 && kill(daemon, SIGCONT) == 0);
	asked_ns = clock_monotonic_ns();
	row = json_array_get(all_blocks(client, subject->pid), 0);
	address = half(row, 0) << 32 | half(row, 1);
	found = find(client, subject->pid, address);
	answered_ns = clock_monotonic_ns();
	age_ns = (uint64_t)(json_number_value(json_object_get(json_array_get(found, 0), "age_seconds")) * 1e9);
	live_note("%.1f ms old, %.1f ms after it was made", (double)age_ns / NSEC_PER_MSEC,
		  (double)(asked_ns - made_ns) / NSEC_PER_MSEC);
	require(age_ns + ROUNDED_NS >= asked_ns - made_ns);
	require(age_ns <= answered_ns - begun_ns + ROUNDED_NS);
	varlink_client_close(client);
	tool_end(tool, subject, before);
}

static const struct live_case cases[] = {
	LIVE_CASE(current_and_peak_are_those_since_clear_and_reset_peak),
	LIVE_CASE(blocks_are_found_by_each_of_their_bytes_and_are_as_old_as_they_are),
	LIVE_CASE(a_block_is_as_old_as_it_is_when_its_tracer_was_late),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
