#include "daemon/watches_private.h"

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/programs.h"
#include "daemon/shims.h"
#include "daemon/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE ".service"

struct rule *rule_find(const struct watches *watches, const char *who)
{
	for (size_t i = 0; i < watches->rules.count; i++) {
		if (strcmp(watches->rules.items[i]->is.who, who) == 0)
			return watches->rules.items[i];
	}
	return NULL;
}

/* The last of them: numbers are used again. */
struct history_run *watches_run(struct watches *watches, const char *who, int pid, uint64_t start_time)
{
	for (size_t i = watches->past.runs.count; i-- > 0;) {
		struct history_run *run = &watches->past.runs.items[i];

		if (run->pid == pid && run->start_time == start_time && strcmp(run->who, who) == 0)
			return run;
	}
	return NULL;
}

/* --- rules --- */

static int on_interval(sd_event_source *source, uint64_t usec, void *context)
{
	struct rule *rule = context;

	(void)usec;
	if (rule->watches->stopped)
		return 0;
	watched_take_all(rule);
	sd_event_source_set_time_relative(source, rule->is.every_ns / 1000);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static struct watches_answer answer_of(const struct rule *rule, const char *problem)
{
	struct watches_answer answer = { .problem = problem };

	if (rule->is.from_start)
		answer.drop_in = shims_path(rule->watches->shims, rule->is.who);
	return answer;
}

static void tell(struct rule *rule, const char *problem)
{
	struct watches_answer answer = answer_of(rule, problem);
	watches_done_fn done = rule->done;

	rule->done = NULL;
	if (done)
		done(rule->done_context, &answer);
}

static void rule_free(struct rule *rule)
{
	while (rule->list.count > 0)
		watched_free(rule->list.items[rule->list.count - 1]);
	vec_fini(&rule->list);
	sd_event_source_disable_unref(rule->timer);
	free(rule);
}

static int set_timer(struct rule *rule)
{
	uint64_t usec = rule->is.every_ns / 1000;

	rule->timer = sd_event_source_disable_unref(rule->timer);
	return sd_event_add_time_relative(rule->watches->daemon->event, &rule->timer, CLOCK_MONOTONIC, usec, usec / 100,
					  on_interval, rule);
}

static int follow(struct rule *rule)
{
	return rule->is.is_program ? programs_follow(rule->watches->programs, rule->is.who)
				   : units_follow(rule->watches->units, rule->is.who);
}

static struct rule *rule_new(struct watches *watches, const struct history_rule *is)
{
	struct rule *rule = vec_reserve(&watches->rules, 1) < 0 ? NULL : calloc(1, sizeof(*rule));
	struct rule **slot;

	if (!rule)
		return NULL;
	rule->watches = watches;
	rule->is = *is;
	if (set_timer(rule) < 0) {
		rule_free(rule);
		return NULL;
	}
	slot = vec_push(&watches->rules);
	*slot = rule;
	return rule;
}

static void unlist(struct rule *rule)
{
	struct watches *watches = rule->watches;

	for (size_t i = 0; i < watches->rules.count; i++) {
		if (watches->rules.items[i] == rule) {
			vec_remove_unordered(&watches->rules, i);
			break;
		}
	}
}

static int change(struct rule *rule, const struct history_rule *is)
{
	bool same = rule->is.every_ns == is->every_ns;

	if (rule->is.from_start && !is->from_start)
		shims_take_out(rule->watches->shims, is->who, NULL, NULL);
	rule->is = *is;
	return same ? 0 : set_timer(rule);
}

/* Whoever asked before for the same has its answer now. */
static void wait_for_look_up(struct rule *rule, watches_done_fn done, void *context)
{
	tell(rule, NULL);
	rule->done = done;
	rule->done_context = context;
}

static int add_rule(struct watches *watches, const struct history_rule *is, watches_done_fn done, void *context)
{
	struct rule *rule = rule_find(watches, is->who);
	struct watches_answer answer;
	int r;

	if (rule) {
		r = change(rule, is);
		if (r < 0)
			return r;
		watches_save(watches);
		rule_thin_out(rule);
		answer = answer_of(rule, NULL);
		if (done)
			done(context, &answer);
		return 0;
	}
	if (watches->rules.count >= HISTORY_RULES_MAX)
		return -ENOSPC;
	rule = rule_new(watches, is);
	if (!rule)
		return -ENOMEM;
	watches_save(watches);
	wait_for_look_up(rule, done, context);
	r = follow(rule);
	if (r < 0) {
		rule->done = NULL;
		unlist(rule);
		rule_free(rule);
		watches_save(watches);
		return r;
	}
	if (is->is_program)
		tell(rule, NULL);
	return 0;
}

/* --- from the start --- */

static bool is_from_start(const struct watches *watches, const char *who)
{
	const struct rule *rule = rule_find(watches, who);

	return rule && rule->is.from_start;
}

/* Nothing of a rule that was not made stays in the unit. */
static void on_shim(void *context, const char *path, const char *refusal)
{
	struct starting starting = *(struct starting *)context;
	struct watches *watches = starting.watches;
	struct watches_answer answer = { .refusal = refusal };
	int r = 0;

	(void)path;
	for (size_t i = 0; i < watches->starting.count; i++) {
		if (watches->starting.items[i] == context) {
			vec_remove_unordered(&watches->starting, i);
			break;
		}
	}
	free(context);
	if (!refusal)
		r = add_rule(watches, &starting.is, starting.done, starting.done_context);
	if (r < 0)
		answer.refusal = r == -ENOSPC ? "there are as many rules as may be" : strerror(-r);
	if (!answer.refusal)
		return;
	if (!is_from_start(watches, starting.is.who))
		shims_take_out(watches->shims, starting.is.who, NULL, NULL);
	if (starting.done)
		starting.done(starting.done_context, &answer);
}

static int add_from_start(struct watches *watches, const struct history_rule *is, watches_done_fn done, void *context)
{
	struct starting *starting, **slot;
	int r;

	if (!rule_find(watches, is->who) && watches->rules.count + watches->starting.count >= HISTORY_RULES_MAX)
		return -ENOSPC;
	starting = vec_reserve(&watches->starting, 1) < 0 ? NULL : calloc(1, sizeof(*starting));
	if (!starting)
		return -ENOMEM;
	*starting = (struct starting){ watches, *is, done, context };
	r = shims_put(watches->shims, is->who, on_shim, starting);
	if (r < 0) {
		free(starting);
		return r;
	}
	slot = vec_push(&watches->starting);
	*slot = starting;
	units_connect(watches->units);
	return 0;
}

int watches_add(struct watches *watches, const struct history_rule *is, watches_done_fn done, void *context)
{
	return is->from_start ? add_from_start(watches, is, done, context) : add_rule(watches, is, done, context);
}

static void on_taken_out(void *context, const char *path, const char *refusal)
{
	struct removing *removing = context;
	struct watches *watches = removing->watches;
	const struct watches_answer answer = { .refusal = refusal };

	(void)path;
	for (size_t i = 0; i < watches->removing.count; i++) {
		if (watches->removing.items[i] == removing) {
			vec_remove_unordered(&watches->removing, i);
			break;
		}
	}
	if (removing->done)
		removing->done(removing->done_context, &answer);
	free(removing);
}

static void take_out(struct watches *watches, const char *who, watches_done_fn done, void *context)
{
	struct removing *removing = vec_reserve(&watches->removing, 1) < 0 ? NULL : calloc(1, sizeof(*removing)), **slot;
	const struct watches_answer answer = { .refusal = NULL };

	if (!removing) {
		shims_take_out(watches->shims, who, NULL, NULL);
		done(context, &answer);
		return;
	}
	*removing = (struct removing){ watches, done, context };
	slot = vec_push(&watches->removing);
	*slot = removing;
	shims_take_out(watches->shims, who, on_taken_out, removing);
}

void watches_nobody_waits(struct watches *watches, void *context)
{
	for (size_t i = 0; i < watches->rules.count; i++) {
		if (watches->rules.items[i]->done && watches->rules.items[i]->done_context == context)
			watches->rules.items[i]->done = NULL;
	}
	for (size_t i = 0; i < watches->starting.count; i++) {
		if (watches->starting.items[i]->done_context == context)
			watches->starting.items[i]->done = NULL;
	}
	for (size_t i = 0; i < watches->removing.count; i++) {
		if (watches->removing.items[i]->done_context == context)
			watches->removing.items[i]->done = NULL;
	}
}

int watches_remove(struct watches *watches, const char *who, watches_done_fn done, void *context)
{
	struct rule *rule = rule_find(watches, who);
	const struct watches_answer answer = { .refusal = NULL };
	bool from_start = is_from_start(watches, who);

	if (!rule)
		return -ENOENT;
	unlist(rule);
	if (rule->is.is_program)
		programs_leave(watches->programs, who);
	else
		units_leave(watches->units, who);
	tell(rule, "it was taken back");
	while (rule->list.count > 0)
		watched_end(rule->list.items[rule->list.count - 1]);
	rule_free(rule);
	watches_save(watches);
	if (from_start)
		take_out(watches, who, done, context);
	else
		done(context, &answer);
	return 0;
}

bool watches_name(const char *text, char who[HISTORY_WHO_MAX])
{
	size_t len = strlen(text), suffix = strlen(SERVICE);
	bool is_path = text[0] == '/', has_suffix = len > suffix && strcmp(text + len - suffix, SERVICE) == 0;

	if (len == 0 || len + suffix >= HISTORY_WHO_MAX || (!is_path && strchr(text, '/')))
		return false;
	snprintf(who, HISTORY_WHO_MAX, "%s%s", text, is_path || has_suffix ? "" : SERVICE);
	return true;
}

/* --- what is heard --- */

static void on_main_pid(void *context, const char *unit, int pid)
{
	struct watches *watches = context;
	struct rule *rule = rule_find(watches, unit);

	if (rule && pid > 0 && !watches->stopped)
		watched_begin(rule, pid);
}

static void on_looked_up(void *context, const char *unit, const char *problem)
{
	struct rule *rule = rule_find(context, unit);

	if (rule && problem && !rule->done)
		log_warning("%s: %s", unit, problem);
	if (rule)
		tell(rule, problem);
}

static void on_bus(void *context, sd_bus *bus, const char *problem)
{
	struct watches *watches = context;

	shims_use_bus(watches->shims, bus, problem);
}

static int on_look(sd_event_source *source, void *context)
{
	struct watches *watches = context;

	(void)source;
	for (size_t i = watches->rules.count; i-- > 0;)
		watched_look_all(watches->rules.items[i]);
	return 0;
}

/* Not at once: sessions tell of changes in the middle of them. */
void watches_look(struct watches *watches)
{
	if (watches && watches->started && !watches->stopped)
		sd_event_source_set_enabled(watches->look, SD_EVENT_ONESHOT);
}

/* --- the whole --- */

/* Snapshots must be known before any of them is let go; ids go on from theirs. */
static void start(void *context)
{
	struct watches *watches = context;

	if (watches->stopped)
		return;
	watches->started = true;
	for (size_t i = 0; i < watches->past.rules.count; i++) {
		struct rule *rule = rule_new(watches, &watches->past.rules.items[i]);

		if (!rule || follow(rule) < 0)
			log_error("%s: is not watched: the daemon is out of memory", watches->past.rules.items[i].who);
		else if (rule->is.from_start)
			shims_put(watches->shims, rule->is.who, NULL, NULL);
	}
	vec_fini(&watches->past.rules);
}

int watches_new(struct daemon *daemon, struct watches **ret)
{
	struct watches *watches = calloc(1, sizeof(*watches));
	const struct units_owner units_owner = { watches, on_main_pid, on_looked_up, on_bus };
	const struct programs_owner programs_owner = { watches, on_main_pid };
	int r;

	if (!watches)
		return -ENOMEM;
	watches->daemon = daemon;
	r = shims_new(daemon->event, &watches->shims);
	if (r >= 0)
		r = units_new(daemon->event, &units_owner, &watches->units);
	if (r >= 0)
		r = programs_new(daemon->event, &programs_owner, &watches->programs);
	if (r >= 0)
		r = sd_event_add_defer(daemon->event, &watches->look, on_look, watches);
	if (r >= 0)
		r = watches_prepare_saving(watches);
	if (r < 0) {
		watches_free(watches);
		return r;
	}
	sd_event_source_set_enabled(watches->look, SD_EVENT_OFF);
	watches_load(watches);
	*ret = watches;
	snapshots_when_listed(daemon->snapshots, start, watches);
	return 0;
}

void watches_stop(struct watches *watches)
{
	if (!watches || watches->stopped)
		return;
	/* The ends that are seen from now on are the daemon's. */
	watches->stopped = true;
	for (size_t i = 0; i < watches->rules.count; i++)
		watches->rules.items[i]->timer = sd_event_source_disable_unref(watches->rules.items[i]->timer);
	sd_event_source_set_enabled(watches->save_again, SD_EVENT_OFF);
	if (watches->unsaved)
		watches_save(watches);
}

void watches_free(struct watches *watches)
{
	if (!watches)
		return;
	watched_tell_untaken(watches, LOG_AT_THE_END);
	shims_free(watches->shims);
	units_free(watches->units);
	programs_free(watches->programs);
	sd_event_source_disable_unref(watches->look);
	sd_event_source_disable_unref(watches->save_again);
	while (watches->rules.count > 0)
		rule_free(watches->rules.items[--watches->rules.count]);
	vec_fini(&watches->rules);
	while (watches->starting.count > 0)
		free(watches->starting.items[--watches->starting.count]);
	vec_fini(&watches->starting);
	while (watches->removing.count > 0)
		free(watches->removing.items[--watches->removing.count]);
	vec_fini(&watches->removing);
	history_fini(&watches->past);
	free(watches->path);
	free(watches);
}

size_t watches_count(const struct watches *watches)
{
	return watches->rules.count;
}

bool watches_are_settled(const struct watches *watches)
{
	return !watches->saving && watches->taking == 0;
}
