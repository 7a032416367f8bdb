/* Snapshots in floods: what daemon, tracer and state folder hold after many is what they held after some, and a limit
 * that is reached is said. */
#include "client.h"
#include "footprint.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"
#include "varlink/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 40                        /* --max-snapshots */
#define LIVE_BLOCKS 300
/* What allocators keep of what was given back to them moves a little, up to a size that does not depend on how
 * long it goes on. */
#define PLAY_KB 3072

/* --- what is held --- */

struct holdings {
	struct footprint daemon, tracer;
	long files;
	long long file_bytes;
	long long tracer_memory;
};

/* --- clients --- */

struct flood {
	struct tool *tool;
	pid_t pid, tracer;
	const char *state;
	long others;                    /* files there that are no snapshots: the lock, what the tracer would need */
	bool blocks;
	struct varlink_client *client;
	json_t *ids;                    /* kept, oldest first */
	long descriptors;               /* when it was warm; 0: not yet */
	unsigned taken, refused, fresh;
};

static void remove_oldest(struct flood *flood)
{
	json_t *ids = json_array();

	json_array_append(ids, json_array_get(flood->ids, 0));
	json_array_remove(flood->ids, 0);
	json_decref(client_call(flood->client, "RemoveSnapshots", json_pack("{s:o}", "ids", ids), NULL));
}

/* As many as may be are kept, all under one name; the oldest goes when the daemon says that it is full. */
static void take_one(struct flood *flood)
{
	const char *limit = NULL;
	json_t *reply;

	while (!(reply = client_call(flood->client, "TakeSnapshot",
			      json_pack("{s:i, s:s, s:b}", "pid", (int)flood->pid, "name", "again", "blocks",
					flood->blocks), &limit))) {
		require_text(limit, "snapshots");
		flood->refused++;
		remove_oldest(flood);
	}
	json_array_append_new(flood->ids, json_string(json_text(reply, "snapshot.id")));
	json_decref(reply);
	flood->taken++;
}

static int forget(void *context, json_t *reply)
{
	(void)reply;
	++*(unsigned *)context;
	return 0;
}

/* One that is not kept. */
static void get_fresh(struct flood *flood)
{
	json_t *parameters = json_pack("{s:s, s:b}", "snapshot", pid_text(flood->pid), "blocks", flood->blocks);
	json_t *error = NULL;
	unsigned pieces = 0;

	require_equal(varlink_client_stream(flood->client, "GetSnapshot", parameters, forget, &pieces, &error), 0);
	require_at_least(pieces, 1);
	json_decref(parameters);
	flood->fresh++;
}

/* Of the daemon and the tracer. */
static long descriptors_of(const struct flood *flood)
{
	return folder_entries(live_text("/proc/%d/fd", tool_daemon(flood->tool)), NULL) +
	       folder_entries(live_text("/proc/%d/fd", flood->tracer), NULL);
}

/* What was asked for is answered before all of it is put away: files are written, connections closed. */
static bool is_settled(void *context)
{
	struct flood *flood = context;

	return folder_entries(flood->state, NULL) == (long)json_array_size(flood->ids) + flood->others &&
	       (flood->descriptors == 0 || descriptors_of(flood) <= flood->descriptors);
}

static struct holdings look_at_all(struct flood *flood)
{
	struct holdings held = { 0 };

	if (!live_wait(is_settled, flood, 30000))
		live_fail("%zu snapshots are kept in %ld files, and there are %ld descriptors, not %ld",
			  json_array_size(flood->ids), folder_entries(flood->state, NULL), descriptors_of(flood),
			  flood->descriptors);
	held.daemon = footprint_of(tool_daemon(flood->tool));
	held.tracer = footprint_of(flood->tracer);
	held.files = folder_entries(flood->state, &held.file_bytes);
	held.tracer_memory = json_number(tool_status(flood->tool, flood->pid), "tracer_memory");
	return held;
}

static void print(const char *when, const struct holdings *held)
{
	live_note("%s: daemon RSS %ld kB, data %ld kB, %ld descriptors; tracer RSS %ld kB, data %ld kB, %ld descriptors, "
		  "tables %lld bytes; state %ld files, %lld bytes", when, held->daemon.rss, held->daemon.data,
		  held->daemon.descriptors, held->tracer.rss, held->tracer.data, held->tracer.descriptors,
		  held->tracer_memory, held->files, held->file_bytes);
}

static void require_no_growth(const struct holdings *warm, const struct holdings *end)
{
	require_at_least(warm->daemon.rss + PLAY_KB, end->daemon.rss);
	require_at_least(warm->daemon.data + PLAY_KB, end->daemon.data);
	require_at_least(warm->tracer.rss + PLAY_KB, end->tracer.rss);
	require_at_least(warm->tracer.data + PLAY_KB, end->tracer.data);
	require_at_least(warm->files, end->files);
	/* some more digits */
	require_at_least(warm->file_bytes + warm->file_bytes / 4, end->file_bytes);
	require_at_least(warm->tracer_memory + warm->tracer_memory / 4, end->tracer_memory);
}

static void flood_with(bool blocks)
{
	struct tool *tool = tool_start_system("--max-snapshots", live_text("%d", KEPT));
	struct subject *subject = victim_start("tests/victims/turnover", NULL);
	struct state *before = state_take(subject->pid);
	struct flood flood = { .tool = tool, .pid = subject->pid, .blocks = blocks, .ids = json_array() };
	unsigned rounds = live_rounds(90, 7200), warm_up = live_rounds(55, 1200);
	struct holdings warm = { 0 }, end;
	uint64_t began;

	tool_attach(tool, subject->pid);
	flood.tracer = tool_tracer(subject->pid);
	flood.client = client_of(tool);
	flood.state = live_text("%s/state", live_text("%.*s", (int)(strrchr(tool_socket(tool), '/') - tool_socket(tool)),
						      tool_socket(tool)));
	flood.others = folder_entries(flood.state, NULL);
	for (int i = 0; i < LIVE_BLOCKS; i++)
		subject_command(subject, 'g');
	subject_command(subject, 'w');
	began = clock_monotonic_ns();
	for (unsigned i = 0; i < rounds; i++) {
		if (i == warm_up) {
			warm = look_at_all(&flood);
			flood.descriptors = warm.daemon.descriptors + warm.tracer.descriptors;
			print("warm", &warm);
		} else if (i % 1200 == 0 && i > 0) {
			end = look_at_all(&flood);
			print(live_text("after %u", i), &end);
		}
		take_one(&flood);
		if (i % 4 == 0)
			get_fresh(&flood);
	}
	end = look_at_all(&flood);
	print("end", &end);
	subject_command(subject, 'i');
	live_note("%u kept, %u not kept, %u refused by the limit of %d, in %.1f s", flood.taken, flood.fresh,
		  flood.refused, KEPT, (double)(clock_monotonic_ns() - began) / 1e9);
	require_equal(flood.taken, rounds);
	require_equal(flood.refused, (long long)rounds - KEPT);
	require_no_growth(&warm, &end);
	varlink_client_close(flood.client);
	tool_end(tool, subject, before);
}

static void a_flood_of_snapshots_leaves_nothing_behind(void)
{
	flood_with(false);
}

static void a_flood_of_snapshots_with_blocks_leaves_nothing_behind(void)
{
	flood_with(true);
}

/* --- many clients, many targets --- */

#define CLIENTS 48

static void ask_all(struct varlink_client *const *clients, json_t *parameters)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		require_equal(varlink_client_begin(clients[i], "TakeSnapshot", parameters, false), 0);
	json_decref(parameters);
}

/* NULL: an error, whose name is in *ret_error. */
static json_t *answer_of(struct varlink_client *client, const char **ret_error)
{
	json_t *reply = NULL, *error = NULL;
	int r;

	while ((r = varlink_client_take(client, &reply, &error)) == -EAGAIN) {
		struct pollfd wait = { varlink_client_descriptor(client), POLLIN, 0 };

		require_at_least(poll(&wait, 1, 60000), 1);
	}
	if (r < 0 && !error)
		live_fail("no answer: %s", strerror(-r));
	*ret_error = r < 0 ? live_text("%s", json_text(error, "error")) : "";
	json_decref(error);
	return reply;
}

static void close_all(struct varlink_client *const *clients)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		varlink_client_close(clients[i]);
}

static void clients_that_ask_at_once_are_all_answered(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/turnover", NULL);
	struct state *before = state_take(subject->pid);
	unsigned rounds = live_rounds(1, 60), kept = 0, refused = 0;
	struct varlink_client *clients[CLIENTS];

	tool_attach(tool, subject->pid);
	subject_command(subject, 'w');
	for (unsigned i = 0; i < CLIENTS; i++)
		clients[i] = client_of(tool);
	for (unsigned round = 0; round < rounds; round++) {
		json_t *ids = json_array();

		ask_all(clients, json_pack("{s:i, s:s}", "pid", (int)subject->pid, "name", "same"));
		for (unsigned i = 0; i < CLIENTS; i++) {
			const char *error;
			json_t *reply = answer_of(clients[i], &error);

			if (reply)
				json_array_append_new(ids, json_string(json_text(reply, "snapshot.id")));
			else
				require_text(error, "LimitReached");
			refused += !reply;
			json_decref(reply);
		}
		kept += (unsigned)json_array_size(ids);
		/* the newest of the name; the others have their ids */
		tool_out(tool, "stats", live_text("%d:same", subject->pid), NULL);
		json_decref(client_call(clients[0], "RemoveSnapshots", json_pack("{s:o}", "ids", ids), NULL));
	}
	subject_command(subject, 'i');
	live_note("%u calls by %d clients at once: %u kept, %u refused by a limit", rounds * CLIENTS, CLIENTS, kept, refused);
	require_equal(kept, (long long)rounds * CLIENTS);
	close_all(clients);
	tool_end(tool, subject, before);
}

static void clients_that_ask_while_it_is_let_go_are_all_answered(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/turnover", NULL);
	struct state *before = state_take(subject->pid);
	unsigned rounds = live_rounds(2, 60), kept = 0, late = 0;
	struct varlink_client *clients[CLIENTS], *other = client_of(tool);
	json_t *reply, *ids;
	const char *error;

	subject_command(subject, 'w');
	for (unsigned i = 0; i < CLIENTS; i++)
		clients[i] = client_of(tool);
	for (unsigned round = 0; round < rounds; round++) {
		tool_attach(tool, subject->pid);
		ask_all(clients, json_pack("{s:i}", "pid", (int)subject->pid));
		reply = answer_of(clients[0], &error);
		require(reply != NULL);
		ids = json_pack("[s]", json_text(reply, "snapshot.id"));
		json_decref(reply);
		json_decref(client_call(other, "Detach", json_pack("{s:i}", "pid", (int)subject->pid), NULL));
		for (unsigned i = 1; i < CLIENTS; i++) {
			reply = answer_of(clients[i], &error);
			if (reply)
				json_array_append_new(ids, json_string(json_text(reply, "snapshot.id")));
			else
				require_text(error, "NotTraced");
			late += !reply;
			json_decref(reply);
		}
		kept += (unsigned)json_array_size(ids);
		json_decref(client_call(other, "RemoveSnapshots", json_pack("{s:o}", "ids", ids), NULL));
	}
	subject_command(subject, 'i');
	live_note("%u calls beside %u detaches: %u kept, %u came too late", rounds * CLIENTS, rounds, kept, late);
	require_equal(kept + late, (long long)rounds * CLIENTS);
	close_all(clients);
	varlink_client_close(other);
	tool_attach(tool, subject->pid);
	tool_end(tool, subject, before);
}

#define TARGETS 6

struct taking {
	struct varlink_client *client;
	pid_t pid;
	bool blocks;
};

/* Those that are still to be written are in the way for a moment. */
static bool is_taken(void *context)
{
	const struct taking *taking = context;
	json_t *reply = client_call(taking->client, "TakeSnapshot",
			     json_pack("{s:i, s:b}", "pid", (int)taking->pid, "blocks", taking->blocks), NULL);

	json_decref(reply);
	return reply != NULL;
}

/* A mebibyte is a few of these: those on disk make way, and come back when they are asked for. */
static void many_targets_share_the_memory_for_snapshots(void)
{
	struct tool *tool = tool_start_system("--max-memory", "1");
	struct subject *subjects[TARGETS];
	struct state *before[TARGETS];
	unsigned rounds = live_rounds(3, 50), read = 0;
	struct varlink_client *client = client_of(tool);
	long start, end;
	json_t *list, *info;
	size_t i;

	for (int t = 0; t < TARGETS; t++) {
		subjects[t] = victim_start("tests/victims/turnover", NULL);
		before[t] = state_take(subjects[t]->pid);
		tool_attach(tool, subjects[t]->pid);
		for (int k = 0; k <= t; k++)
			subject_command(subjects[t], 'g');
	}
	start = footprint_of(tool_daemon(tool)).rss;
	for (unsigned round = 0; round < rounds; round++) {
		for (int t = 0; t < TARGETS; t++) {
			struct taking taking = { client, subjects[t]->pid, round % 2 };

			if (!live_wait(is_taken, &taking, 30000))
				live_fail("there is never memory for another one");
		}
	}
	end = footprint_of(tool_daemon(tool)).rss;
	list = json_object_get(tool_json(tool, "snapshots", NULL), "snapshots");
	require_equal((long long)json_array_size(list), (long long)rounds * TARGETS);
	json_array_foreach(list, i, info) {
		json_t *stats = tool_json(tool, "stats", json_text(info, "id"), "--by", "domain", NULL);

		require_equal(json_number(stats, "total.count"), json_number(info, "count"));
		require_equal(json_number(info, "count"), (long long)(i % TARGETS) + 1);
		read++;
	}
	live_note("%u snapshots of %d targets in 1 MiB: daemon RSS %ld kB before, %ld kB after, all %u read back",
		  rounds * TARGETS, TARGETS, start, end, read);
	require_at_least(start + 1024 + PLAY_KB, end);
	varlink_client_close(client);
	for (int t = 0; t < TARGETS; t++)
		tool_end(tool, subjects[t], before[t]);
}

/* Births are dated to 10 ms, and each snapshot takes such a date for itself. */
static void ages_are_right_after_many_snapshots_at_once(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/turnover", NULL);
	struct state *before = state_take(subject->pid);
	struct varlink_client *clients[CLIENTS];
	unsigned rounds = live_rounds(3, 100);
	double age;
	json_t *stats;
	uint64_t began, asked;

	tool_attach(tool, subject->pid);
	subject_command(subject, 'w');
	for (unsigned i = 0; i < CLIENTS; i++)
		clients[i] = client_of(tool);
	began = clock_monotonic_ns();
	for (unsigned round = 0; round < rounds; round++) {
		json_t *ids = json_array();

		ask_all(clients, json_pack("{s:i}", "pid", (int)subject->pid));
		for (unsigned i = 0; i < CLIENTS; i++) {
			const char *error;
			json_t *reply = answer_of(clients[i], &error);

			require(reply != NULL);
			json_array_append_new(ids, json_string(json_text(reply, "snapshot.id")));
			json_decref(reply);
		}
		json_decref(client_call(clients[0], "RemoveSnapshots", json_pack("{s:o}", "ids", ids), NULL));
	}
	asked = clock_monotonic_ns();
	subject_command(subject, 'i');
	subject_command(subject, 'g');
	live_let_pass(NSEC_PER_SEC);
	stats = tool_json(tool, "stats", pid_text(subject->pid), "--older-than", "0s", NULL);
	age = json_number_value(json_object_get(json_array_get(json_object_get(stats, "statistics"), 0), "oldest_seconds"));
	live_note("%u snapshots in %.1f s; a block born then is %.2f s old after 1 s", rounds * CLIENTS,
		  (double)(asked - began) / 1e9, age);
	require(age >= 0.45 && age <= (double)(clock_monotonic_ns() - asked) / 1e9 + 0.05);
	close_all(clients);
	tool_end(tool, subject, before);
}

/* --- objects --- */

static void objects_that_come_and_go_leave_nothing_behind(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/plugins", live_text("%s/tests/victims", live_build()), NULL);
	struct state *before = state_take(subject->pid);
	unsigned rounds = live_rounds(36, 3000), warm_up = 12;
	struct footprint daemon = { 0 }, tracer = { 0 };
	long long tables = 0, now;

	tool_attach(tool, subject->pid);
	for (unsigned i = 0; i < rounds; i++) {
		subject_command(subject, 'o');
		subject_command(subject, 'c');
		if (i != warm_up && i != rounds - 1)
			continue;
		now = json_number(tool_status(tool, subject->pid), "tracer_memory");
		live_note("after %u times: tables %lld bytes, tracer %ld kB, descriptors of tracer %ld, daemon %ld", i + 1, now,
			  footprint_of(tool_tracer(subject->pid)).anonymous, footprint_of(tool_tracer(subject->pid)).descriptors,
			  footprint_of(tool_daemon(tool)).descriptors);
		if (i == warm_up) {
			tables = now;
			tracer = footprint_of(tool_tracer(subject->pid));
			daemon = footprint_of(tool_daemon(tool));
		}
	}
	require_equal(json_number(tool_status(tool, subject->pid), "tracer_memory"), tables);
	/* Of the ring it has read the more the longer this goes on. */
	require_at_least(tracer.anonymous + PLAY_KB, footprint_of(tool_tracer(subject->pid)).anonymous);
	/* one may be just closed */
	require_at_least(tracer.descriptors + 2, footprint_of(tool_tracer(subject->pid)).descriptors);
	require_at_least(daemon.descriptors + 2, footprint_of(tool_daemon(tool)).descriptors);
	subject_command(subject, 'o');
	subject_command(subject, 'g');
	require_text(tool_out(tool, "stats", pid_text(subject->pid), NULL), "plugin.c");
	subject_command(subject, 'c');
	require_text(tool_out(tool, "stats", pid_text(subject->pid), NULL), "plugin.c");
	tool_end(tool, subject, before);
}

struct descriptors {
	pid_t pid;
	long most;
};

static bool has_no_more_descriptors(void *context)
{
	const struct descriptors *descriptors = context;

	return footprint_of(descriptors->pid).descriptors <= descriptors->most;
}

static void programs_that_are_executed_leave_nothing_behind(void)
{
	struct tool *tool = tool_start();
	struct subject *subject = victim_start("tests/victims/execer", NULL);
	unsigned rounds = live_rounds(20, 1000), warm_up = 10;
	struct footprint daemon = { 0 }, tracer = { 0 }, end;
	long long tables = 0;

	tool_attach(tool, subject->pid);
	for (unsigned i = 0; i < rounds; i++) {
		require_text(subject_command(subject, 'g'), "R");
		subject_command(subject, 'a');
		if (i != warm_up)
			continue;
		tables = json_number(tool_status(tool, subject->pid), "tracer_memory");
		tracer = footprint_of(tool_tracer(subject->pid));
		daemon = footprint_of(tool_daemon(tool));
	}
	require_equal(json_number(tool_status(tool, subject->pid), "tracer_memory"), tables);
	end = footprint_of(tool_daemon(tool));
	live_note("after %u and %u: tables %lld bytes; daemon RSS %ld and %ld kB, descriptors %ld and %ld; tracer RSS %ld and "
		  "%ld kB", warm_up + 1, rounds, tables, daemon.rss, end.rss, daemon.descriptors, end.descriptors, tracer.rss,
		  footprint_of(tool_tracer(subject->pid)).rss);
	require_at_least(tracer.rss + PLAY_KB, footprint_of(tool_tracer(subject->pid)).rss);
	require_at_least(tracer.descriptors + 2, footprint_of(tool_tracer(subject->pid)).descriptors);
	require_at_least(daemon.rss + PLAY_KB, end.rss);
	/* Those of the last snapshots are open until these have their names. */
	require(live_wait(has_no_more_descriptors, &(struct descriptors){ tool_daemon(tool), daemon.descriptors + 4 }, 30000));
	tool_end(tool, subject, NULL);
}

static const struct live_case cases[] = {
	LIVE_CASE(programs_that_are_executed_leave_nothing_behind),
	LIVE_CASE(objects_that_come_and_go_leave_nothing_behind),
	LIVE_CASE(clients_that_ask_at_once_are_all_answered),
	LIVE_CASE(clients_that_ask_while_it_is_let_go_are_all_answered),
	LIVE_CASE(ages_are_right_after_many_snapshots_at_once),
	LIVE_CASE(many_targets_share_the_memory_for_snapshots),
	LIVE_CASE(a_flood_of_snapshots_leaves_nothing_behind),
	LIVE_CASE(a_flood_of_snapshots_with_blocks_leaves_nothing_behind),
};

int main(int argc, char **argv)
{
	return live_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
