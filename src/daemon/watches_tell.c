/* What was watched, and the snapshots of it: told, found, and let go. */
#include "daemon/watches_private.h"

#include "base/clock.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/shims.h"
#include "model/engine_kind.h"
#include "model/snapshot_name.h"
#include "varlink/codec.h"

#include <stdlib.h>
#include <string.h>

/* Taken of a process of who's: numbers and start times may both come again with another boot. */
#define SLACK_NS (60ULL * NSEC_PER_SEC)

static bool is_of_run(const struct history_run *run, const struct kept_facts *facts)
{
	return run->pid == facts->pid && run->start_time == facts->start_time && facts->taken_ns + SLACK_NS >= run->since_ns &&
	       (run->until_ns == 0 || facts->taken_ns <= run->until_ns + SLACK_NS);
}

static const struct history_run *run_of(const struct watches *watches, const char *who, const struct kept_facts *facts)
{
	for (size_t i = watches->past.runs.count; i-- > 0;) {
		const struct history_run *run = &watches->past.runs.items[i];

		if (is_of_run(run, facts) && strcmp(run->who, who) == 0)
			return run;
	}
	return NULL;
}

/* --- letting go --- */

static bool is_live(const struct rule *rule, const struct history_run *run)
{
	for (size_t i = 0; i < rule->list.count; i++) {
		const struct watched *watched = rule->list.items[i];

		if (watched->pid == run->pid && watched->start_time == run->start_time && watched->state == WATCHED_TRACED)
			return true;
	}
	return false;
}

static bool has_one(struct kept *const *kepts, size_t count, const struct history_run *run)
{
	for (size_t i = 0; i < count; i++) {
		struct kept_facts facts = kept_facts(kepts[i]);

		if (is_of_run(run, &facts))
			return true;
	}
	return false;
}

/* Somebody's own snapshots are nobody's business; the first one of a process that is traced is what the others are
 * compared with. */
static size_t list_items(const struct rule *rule, struct history_item *items, struct kept **kepts)
{
	const struct watches *watches = rule->watches;
	const struct snapshots *snapshots = watches->daemon->snapshots;
	size_t count = 0;

	for (size_t i = 0; i < snapshots_count(snapshots); i++) {
		struct kept *kept = snapshots_at(snapshots, i);
		struct kept_facts facts = kept_facts(kept);
		const struct history_run *run = run_of(watches, rule->is.who, &facts);

		if (!run || snapshot_name_may_be_given(facts.name) || !*facts.name)
			continue;
		items[count] = (struct history_item){ facts.taken_ns, facts.bytes,
						      is_live(rule, run) && !has_one(kepts, count, run) };
		kepts[count++] = kept;
	}
	return count;
}

void rule_thin_out(struct rule *rule)
{
	struct snapshots *snapshots = rule->watches->daemon->snapshots;
	size_t space = snapshots_count(snapshots) + 1;
	struct history_item *items = calloc(space, sizeof(*items));
	struct kept **kepts = calloc(space, sizeof(*kepts));
	size_t count = items && kepts ? list_items(rule, items, kepts) : 0;
	long next;

	while ((next = history_next_to_go(items, count, &rule->is.limits, clock_realtime_ns())) >= 0) {
		log_info("%s: snapshot %s is no longer kept", rule->is.who, kept_id(kepts[next]));
		snapshots_remove(snapshots, kepts[next]);
		count--;
		memmove(items + next, items + next + 1, (count - (size_t)next) * sizeof(*items));
		memmove(kepts + next, kepts + next + 1, (count - (size_t)next) * sizeof(struct kept *));
	}
	free(items);
	free(kepts);
}

/* --- finding --- */

bool watches_knows(const struct watches *watches, const char *who)
{
	if (rule_find(watches, who))
		return true;
	for (size_t i = 0; i < watches->past.runs.count; i++) {
		if (strcmp(watches->past.runs.items[i].who, who) == 0)
			return true;
	}
	return false;
}

struct kept *watches_find(const struct watches *watches, struct viewer viewer, const char *who, const char *name)
{
	const struct snapshots *snapshots = watches->daemon->snapshots;
	struct kept *first = NULL, *last = NULL;

	for (size_t i = snapshots_count(snapshots); i-- > 0;) {
		struct kept *kept = snapshots_at(snapshots, i);
		struct kept_facts facts = kept_facts(kept);

		if (!kept_is_seen(kept, viewer) || !run_of(watches, who, &facts))
			continue;
		if (kept_is_called(kept, name))
			return kept;
		last = last ? last : kept;
		first = kept;
	}
	return strcmp(name, "first") == 0 ? first : strcmp(name, "last") == 0 ? last : NULL;
}

/* --- telling --- */

static json_t *pids_of(const struct rule *rule)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rule->list.count; i++) {
		if (rule->list.items[i]->state == WATCHED_TRACED)
			json_array_append_new(list, json_integer(rule->list.items[i]->pid));
	}
	return list;
}

static json_t *optional_number(uint64_t number)
{
	return number ? json_integer((json_int_t)number) : json_null();
}

static json_t *encode_rule(const struct rule *rule)
{
	const struct history_rule *is = &rule->is;
	const char *drop_in = is->from_start ? shims_path(rule->watches->shims, is->who) : NULL;

	return json_pack("{s:o, s:b, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:s?, s:b, s:b, s:o, s:o}", "who", codec_bytes(is->who),
			 "program", is->is_program, "every_ms", (json_int_t)(is->every_ns / NSEC_PER_MSEC), "keep",
			 optional_number(is->limits.count), "keep_ms", optional_number(is->limits.age_ns / NSEC_PER_MSEC),
			 "keep_bytes", optional_number(is->limits.bytes), "rss_limit", optional_number(is->rss_bytes),
			 "rss_slope", optional_number(is->slope_bytes), "frames", (json_int_t)is->frames, "engine",
			 is->has_engine ? engine_kinds[is->engine] : NULL, "follow_forks", is->follow_forks, "from_start",
			 is->from_start, "drop_in", drop_in ? codec_bytes(drop_in) : json_null(), "pids",
			 pids_of(rule));
}

json_t *watches_list(const struct watches *watches)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < watches->rules.count; i++) {
		if (json_array_append_new(list, encode_rule(watches->rules.items[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

json_t *watches_names(const struct watches *watches, bool may_know)
{
	json_t *list = json_array();

	for (size_t i = 0; list && may_know && i < watches->rules.count; i++) {
		if (json_array_append_new(list, codec_bytes(watches->rules.items[i]->is.who)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *snapshots_of(const struct watches *watches, struct viewer viewer, const struct history_run *run)
{
	const struct snapshots *snapshots = watches->daemon->snapshots;
	json_t *list = json_array();

	for (size_t i = 0; list && i < snapshots_count(snapshots); i++) {
		const struct kept *kept = snapshots_at(snapshots, i);
		struct kept_facts facts = kept_facts(kept);

		if (!is_of_run(run, &facts) || !kept_is_seen(kept, viewer) || run_of(watches, run->who, &facts) != run)
			continue;
		if (json_array_append_new(list, kept_info(kept)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *encode_run(const struct watches *watches, struct viewer viewer, const struct history_run *run)
{
	const struct rule *rule = rule_find(watches, run->who);

	return json_pack("{s:i, s:I, s:o, s:o, s:b, s:o}", "pid", run->pid, "since", (json_int_t)run->since_ns, "until",
			 optional_number(run->until_ns), "exit_status", run->has_status ? json_integer(run->status) : json_null(),
			 "traced", rule && is_live(rule, run), "snapshots", snapshots_of(watches, viewer, run));
}

json_t *watches_history(const struct watches *watches, struct viewer viewer, const char *who)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < watches->past.runs.count; i++) {
		const struct history_run *run = &watches->past.runs.items[i];

		if (strcmp(run->who, who) != 0)
			continue;
		if (json_array_append_new(list, encode_run(watches, viewer, run)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}
