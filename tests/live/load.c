/* What is done to the targets of check_load, and by them. */
#include "load.h"

#include "client.h"
#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

#include "base/clock.h"
#include "varlink/client.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT_MOST 8            /* snapshots of one hand */
#define PAUSE_US 4000          /* between two deeds, at most */
#define ANSWER_S 60
#define HEAL_MS 60000
#define ATTACH_MS 60000

enum tie { FREE, TRACED, KEPT };

struct hand {
	struct load *load;
	struct load_target *target;
	unsigned number;
	pid_t pid;
	enum tie tie;
	struct varlink_client *client;
	char *ids[KEPT_MOST];          /* of its snapshots, oldest first */
	unsigned count;
	uint64_t random;               /* of this step; each use takes some of it */
};

/* splitmix64's last steps */
uint64_t load_draw(uint64_t seed, uint64_t who, uint64_t step)
{
	uint64_t z = seed + who * 0x9e3779b97f4a7c15ULL + step * 0xd1342543de82ef95ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static unsigned take(struct hand *hand, unsigned below)
{
	unsigned drawn = (unsigned)(hand->random % below);

	hand->random = load_draw(hand->random, 0, below);
	return drawn;
}

/* --- calls --- */

static bool is_called(const char *error, const char *name)
{
	return strcmp(error, live_text("org.allocwatch.Tracer.%s", name)) == 0;
}

static bool is_lost(struct hand *hand);

/* On a machine that has too much to do the daemon may take a tracer for stuck, and kill it. */
static bool take_loss(struct hand *hand, const char *error)
{
	if (hand->tie == FREE || (!is_called(error, "NotTraced") && !is_called(error, "Failed")) || !is_lost(hand))
		return false;
	atomic_fetch_add(&hand->load->board->lost, 1);
	hand->tie = FREE;
	return true;
}

/* Takes the parameters over.  NULL: refused by a limit, or by `allowed`, an error's name; or its tracer was lost. */
static json_t *ask(struct hand *hand, const char *method, json_t *parameters, const char *allowed)
{
	json_t *reply = NULL, *error = NULL;
	int r = varlink_client_call(hand->client, method, parameters, &reply, &error);
	const char *name = r == -EREMOTEIO ? json_text(error, "error") : "";

	json_decref(parameters);
	if (r == 0)
		return reply;
	if (!is_called(name, "LimitReached") && !(allowed && is_called(name, allowed)) && !take_loss(hand, name))
		live_fail("%s of %s (%d): %s", method, hand->target->name, hand->pid,
			  error ? json_dumps(error, 0) : strerror(-r));
	atomic_fetch_add(&hand->load->board->refused, 1);
	json_decref(error);
	return NULL;
}

static bool call(struct hand *hand, const char *method, json_t *parameters)
{
	json_t *reply = ask(hand, method, parameters, NULL);

	json_decref(reply);
	return reply != NULL;
}

static json_t *of_pid(const struct hand *hand)
{
	return json_pack("{s:i}", "pid", (int)hand->pid);
}

static struct varlink_client *open_client(const struct hand *hand)
{
	struct varlink_client *client = client_of(hand->load->tool);

	varlink_client_set_patience(client, ANSWER_S);
	return client;
}

/* --- deeds: false when the target is in no state for it --- */

/* All threads in vfork, or not stopped in time on a machine that has too much to do: refused, with nothing changed. */
static bool is_attached(void *context)
{
	struct hand *hand = context;
	json_t *parameters = json_pack("{s:i, s:i}", "pid", (int)hand->pid, "frames", (int)take(hand, 40) + 1);
	json_t *reply = ask(hand, "Attach", parameters, "Failed");

	json_decref(reply);
	return reply != NULL;
}

static bool attach(struct hand *hand)
{
	if (hand->tie == TRACED)
		return false;
	if (!live_wait(is_attached, hand, ATTACH_MS))
		live_fail("%s (%d) cannot be attached to", hand->target->name, hand->pid);
	hand->tie = TRACED;
	return true;
}

static bool detach(struct hand *hand)
{
	if (hand->tie == FREE || hand->target->stays)
		return false;
	call(hand, "Detach", of_pid(hand));
	hand->tie = FREE;
	return true;
}

static bool set_aside(struct hand *hand)
{
	if (hand->tie != TRACED || hand->target->stays)
		return false;
	call(hand, "Detach", json_pack("{s:i, s:b}", "pid", (int)hand->pid, "keep", 1));
	hand->tie = KEPT;
	return true;
}

static bool remove_oldest(struct hand *hand)
{
	if (hand->count == 0)
		return false;
	call(hand, "RemoveSnapshots", json_pack("{s:[s]}", "ids", hand->ids[0]));
	free(hand->ids[0]);
	memmove(hand->ids, hand->ids + 1, --hand->count * sizeof(*hand->ids));
	return true;
}

static bool snapshot(struct hand *hand, bool blocks)
{
	static const char *const names[] = { "before", "middle", "after" };
	json_t *reply;

	if (hand->tie == FREE)
		return false;
	if (hand->count == KEPT_MOST)
		remove_oldest(hand);
	reply = ask(hand, "TakeSnapshot", json_pack("{s:i, s:s, s:b}", "pid", (int)hand->pid, "name", names[take(hand, 3)],
						    "blocks", blocks), NULL);
	if (reply)
		hand->ids[hand->count++] = strdup(json_text(reply, "snapshot.id"));
	json_decref(reply);
	return true;
}

static bool snapshot_plain(struct hand *hand)
{
	return snapshot(hand, false);
}

static bool snapshot_blocks(struct hand *hand)
{
	return snapshot(hand, true);
}

static json_t *draw_query(struct hand *hand)
{
	static const char *const keys[] = { "lineno", "filename", "traceback", "function", "object", "domain" };

	return json_pack("{s:s, s:i}", "key", keys[take(hand, 6)], "limit", (int)take(hand, 50) + 1);
}

/* Sometimes of a kept one, which may have to be read from its file. */
static const char *draw_snapshot(struct hand *hand)
{
	if (hand->count > 0 && take(hand, 2) == 0)
		return hand->ids[take(hand, hand->count)];
	return hand->tie == FREE ? NULL : pid_text(hand->pid);
}

static bool statistics(struct hand *hand)
{
	const char *of = draw_snapshot(hand);

	return of && (call(hand, "Statistics", json_pack("{s:s, s:o}", "snapshot", of, "query", draw_query(hand))), true);
}

static bool compare(struct hand *hand)
{
	const char *old = hand->count > 0 ? hand->ids[0] : NULL, *new = draw_snapshot(hand);

	return old && new && (call(hand, "Compare", json_pack("{s:s, s:s, s:o}", "old", old, "new", new, "query",
							      draw_query(hand))), true);
}

static int stop_after(void *context, json_t *reply)
{
	unsigned *pieces = context;

	(void)reply;
	return (*pieces)-- == 0 ? -ECANCELED : 0;
}

/* Some read all of it, some only the first pieces. */
static bool get(struct hand *hand)
{
	const char *of = draw_snapshot(hand);
	struct varlink_client *client;
	json_t *parameters, *error = NULL;
	unsigned pieces = take(hand, 2) ? 1000000 : take(hand, 2);

	if (!of)
		return false;
	client = open_client(hand);
	parameters = json_pack("{s:s, s:b}", "snapshot", of, "blocks", 1);
	varlink_client_stream(client, "GetSnapshot", parameters, stop_after, &pieces, &error);
	varlink_client_close(client);
	json_decref(parameters);
	json_decref(error);
	return true;
}

/* Asks, and is gone before the answer. */
static bool hang_up(struct hand *hand)
{
	static const char *const methods[] = { "TakeSnapshot", "WaitGone", "GetStatus", "List" };
	const char *method = methods[take(hand, 4)];
	struct varlink_client *client = open_client(hand);
	json_t *parameters = strcmp(method, "List") != 0 ? of_pid(hand) : json_object();

	varlink_client_begin(client, method, parameters, false);
	if (take(hand, 2))
		live_let_pass(take(hand, 1000) * NSEC_PER_USEC);
	varlink_client_close(client);
	json_decref(parameters);
	return true;
}

static bool half_a_message(struct hand *hand)
{
	static const char start[] = "{\"method\":\"org.allocwatch.Tracer.Statistics\",\"parameters\":{";
	int fd = program_connect(tool_socket(hand->load->tool));

	program_send(fd, start, take(hand, sizeof(start) - 1) + 1);
	close(fd);
	return true;
}

static bool reconnect(struct hand *hand)
{
	varlink_client_close(hand->client);
	hand->client = open_client(hand);
	return true;
}

static bool status(struct hand *hand)
{
	return hand->tie == TRACED && (call(hand, "GetStatus", of_pid(hand)), true);
}

static bool list(struct hand *hand)
{
	return call(hand, "List", json_object()) && call(hand, "ListSnapshots", json_object());
}

static bool clear(struct hand *hand)
{
	return hand->tie == TRACED && (call(hand, "Clear", of_pid(hand)), true);
}

static bool reset_peak(struct hand *hand)
{
	return hand->tie == TRACED && (call(hand, "ResetPeak", of_pid(hand)), true);
}

static bool run_client(struct hand *hand)
{
	const char *file = live_text("%s/pickle-%u", live_folder(), hand->number);
	struct tool_run run;

	if (hand->tie == FREE)
		return false;
	if (take(hand, 2))
		run = tool_try(hand->load->tool, "stats", pid_text(hand->pid), "--limit", "5", NULL);
	else
		run = tool_try(hand->load->tool, "export", pid_text(hand->pid), "--format", "tracemalloc", "-o",
			       file, NULL);
	if (run.status != 0 && !strstr(run.err, "allowed") && !take_loss(hand, "org.allocwatch.Tracer.Failed"))
		live_fail("the client ended with %d: %s", run.status, run.err);
	unlink(file);
	free(run.out);
	free(run.err);
	return true;
}

static bool is_lost(struct hand *hand)
{
	json_t *reply = ask(hand, "List", json_object(), NULL), *target;
	bool lost = false;
	size_t i;

	json_array_foreach(json_object_get(reply, "targets"), i, target) {
		if (json_number(target, "pid") == hand->pid)
			lost = strcmp(json_text(target, "state"), "lost") == 0;
	}
	json_decref(reply);
	return lost;
}

static bool is_lost_now(void *context)
{
	return is_lost(context);
}

static bool kill_tracer(struct hand *hand)
{
	if (hand->tie != TRACED || hand->target->stays || hand->target->blocks)
		return false;
	kill(tool_tracer(hand->pid), SIGKILL);
	if (!live_wait(is_lost_now, hand, HEAL_MS) || !live_wait(state_text_is_intact, &hand->pid, HEAL_MS))
		live_fail("%s (%d) was not healed when its tracer had died", hand->target->name, hand->pid);
	call(hand, "Detach", of_pid(hand));
	hand->tie = FREE;
	return true;
}

static const struct {
	const char *name;
	unsigned weight;
	bool (*act)(struct hand *hand);
} deeds[] = {
	{ "attach", 30, attach },
	{ "detach", 20, detach },
	{ "detach that keeps what is known", 4, set_aside },
	{ "tracer killed, and healed", 1, kill_tracer },
	{ "snapshot", 10, snapshot_plain },
	{ "snapshot with blocks", 4, snapshot_blocks },
	{ "snapshot removed", 4, remove_oldest },
	{ "statistics", 8, statistics },
	{ "comparison", 5, compare },
	{ "snapshot sent to a client", 4, get },
	{ "client gone before its answer", 5, hang_up },
	{ "client gone in half a message", 3, half_a_message },
	{ "client that connects again", 3, reconnect },
	{ "status", 5, status },
	{ "lists", 4, list },
	{ "clear", 2, clear },
	{ "reset of the peak", 2, reset_peak },
	{ "allocwatch stats, export", 2, run_client },
};

#define DEEDS (sizeof(deeds) / sizeof(deeds[0]))

_Static_assert(DEEDS <= LOAD_DEEDS_MAX, "each deed has its count");

const char *load_deed_name(unsigned deed)
{
	return deed < DEEDS ? deeds[deed].name : NULL;
}

bool load_deed_is_common(unsigned deed)
{
	return deeds[deed].weight > 1;
}

static unsigned draw_deed(struct hand *hand)
{
	unsigned all = 0, deed = 0, drawn;

	for (unsigned i = 0; i < DEEDS; i++)
		all += deeds[i].weight;
	for (drawn = take(hand, all); drawn >= deeds[deed].weight; deed++)
		drawn -= deeds[deed].weight;
	return deed;
}

static void do_one(struct hand *hand)
{
	unsigned deed = draw_deed(hand);

	if (!deeds[deed].act(hand))
		return;
	atomic_fetch_add(&hand->load->board->done[deed][hand->number], 1);
	live_let_pass(take(hand, PAUSE_US) * NSEC_PER_USEC);
}

/* --- hands and work --- */

struct released {
	const struct load_board *board;
	unsigned rests;
};

static bool is_released(void *context)
{
	const struct released *released = context;

	return released->board->released >= released->rests;
}

static void rest(struct load_board *board, unsigned *rested)
{
	struct released released = { board, *rested + 1 };

	atomic_fetch_add(&board->resting, 1);
	if (!live_wait(is_released, &released, LIVE_DEADLINE_S * 1000))
		live_fail("the rest does not end");
	(*rested)++;
}

static void become_comparable(struct hand *hand)
{
	if (hand->tie != FREE)
		take_loss(hand, "org.allocwatch.Tracer.NotTraced");
	while (remove_oldest(hand))
		;
	detach(hand);
	attach(hand);
}

void load_hand(struct load *load, unsigned target)
{
	struct hand hand = { .load = load, .target = &load->targets[target], .number = target };
	unsigned rested = 0;

	hand.pid = hand.target->program.subject->pid;
	hand.client = open_client(&hand);
	for (uint64_t step = 0; !load->board->ended; step++) {
		hand.random = load_draw(load->seed, target, step);
		if (load->board->rests > rested) {
			become_comparable(&hand);
			rest(load->board, &rested);
		} else if (hand.target->stays && hand.tie == FREE) {
			attach(&hand);
		} else {
			do_one(&hand);
		}
	}
	while (remove_oldest(&hand))
		;
	hand.target->stays = false;
	detach(&hand);
	varlink_client_close(hand.client);
}

void load_work(struct load *load, unsigned target)
{
	struct load_target *at = &load->targets[target];
	unsigned rested = 0;

	for (uint64_t step = 0; !load->board->ended; step++) {
		uint64_t random = load_draw(load->seed, LOAD_TARGETS + target, step);

		if (load->board->rests > rested) {
			rest(load->board, &rested);
			continue;
		}
		at->work(at, random);
		atomic_fetch_add(&load->board->portions, 1);
		live_let_pass(random % (at->pause_ms * NSEC_PER_MSEC));
	}
}
