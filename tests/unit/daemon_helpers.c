#define _GNU_SOURCE
#include "daemon_fixture.h"

#include "varlink/codec.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

json_t *pid_of(pid_t pid)
{
	return json_pack("{s:i}", "pid", (int)pid);
}

json_t *snap(const char *name)
{
	return json_pack("{s:s}", "snapshot", name);
}

void ok(const char *method, json_t *parameters)
{
	json_decref(call_ok(method, parameters));
}

void fails(const char *method, json_t *parameters, const char *error)
{
	json_decref(call_fails(method, parameters, error));
}

/* "s1", from a static buffer. */
const char *take(pid_t pid, const char *name)
{
	static char id[32];
	json_t *reply = call_ok("TakeSnapshot", json_pack("{s:i, s:s}", "pid", (int)pid, "name", name));

	snprintf(id, sizeof(id), "%s", text_of(member(reply, "snapshot"), "id"));
	json_decref(reply);
	return id;
}

size_t kept_count(void)
{
	json_t *reply = call_ok("ListSnapshots", json_object());
	size_t count = json_array_size(member(reply, "snapshots"));

	json_decref(reply);
	return count;
}

const char *state_of(pid_t pid)
{
	static char state[32];
	json_t *reply = call_ok("List", json_object()), *target;
	size_t i;

	state[0] = '\0';
	json_array_foreach(member(reply, "targets"), i, target) {
		if (number_of(target, "pid") == pid)
			snprintf(state, sizeof(state), "%s", text_of(target, "state"));
	}
	json_decref(reply);
	return state;
}

struct expected_state {
	pid_t pid;
	const char *state;
};

static bool is_in_state(void *context)
{
	const struct expected_state *expected = context;

	return strcmp(state_of(expected->pid), expected->state) == 0;
}

void wait_for_state(pid_t pid, const char *state)
{
	struct expected_state expected = { pid, state };

	wait_until(is_in_state, &expected, state);
}


static int feed(void *context, json_t *reply)
{
	return codec_snapshot_reader_feed(context, json_object_get(reply, "tables"));
}

struct snapshot *get_snapshot(const char *name)
{
	struct codec_snapshot_reader *reader = codec_snapshot_reader_new();
	json_t *parameters = snap(name), *error = NULL;
	struct snapshot *snapshot = NULL;
	const char *reason = "";

	ck_assert_int_eq(varlink_client_stream(test_client, "GetSnapshot", parameters, feed, reader, &error), 0);
	ck_assert_msg(codec_snapshot_reader_finish(reader, &snapshot, &reason) == 0, "%s", reason);
	codec_snapshot_reader_free(reader);
	json_decref(parameters);
	return snapshot;
}

uint64_t live_bytes(const struct snapshot *snapshot)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < snapshot->traces.count; i++)
		sum += snapshot->traces.items[i].live_bytes;
	return sum;
}

bool names_function(const struct snapshot *snapshot, const char *function)
{
	for (size_t i = 0; i < snapshot->locations.count; i++) {
		if (strcmp(strtab_get(snapshot->strings, snapshot->locations.items[i].function), function) == 0)
			return true;
	}
	return false;
}

size_t resident_bytes(pid_t pid)
{
	unsigned long pages = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%*u %lu", &pages), 1);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

bool is_noted(void *context)
{
	return tracer_notes(context) > 0;
}

TCase *fixture_case(Suite *suite, const char *name)
{
	TCase *tcase = tcase_create(name);

	tcase_add_checked_fixture(tcase, fixture_setup, fixture_teardown);
	tcase_set_timeout(tcase, 120);
	suite_add_tcase(suite, tcase);
	return tcase;
}

int fixture_run(const char *name, void (*add_tests)(Suite *suite))
{
	Suite *suite = suite_create(name);
	SRunner *runner;
	int failed;

	add_tests(suite);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
