/* Watch, Unwatch, ListWatches, GetHistory. */
#include "daemon/daemon.h"
#include "daemon/failures.h"
#include "daemon/params.h"
#include "daemon/permit.h"
#include "daemon/requests.h"
#include "daemon/watches.h"
#include "model/engine_kind.h"
#include "varlink/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What rules trace is the daemon's own user's. */
static bool may_rule(struct call *call)
{
	if (call->peer.uid == 0 || call->peer.uid == geteuid())
		return true;
	fail_not_permitted(call, 0, "what this daemon watches is its own user's business", "ask as root", 0);
	return false;
}

/* To know of them is enough for who only reads.  False: the call is answered. */
static bool take_who(struct call *call, char who[HISTORY_WHO_MAX])
{
	if (!permit_sees_rules(call) && !may_rule(call))
		return false;
	if (watches_name(param_text(call->parameters, "who", ""), who))
		return true;
	fail_invalid_parameter(call, "who");
	return false;
}

/* --- Watch --- */

static bool take_rule(struct call *call, struct history_rule *rule)
{
	const json_t *parameters = call->parameters;
	const char *engine = param_text(parameters, "engine", NULL);

	if (!take_who(call, rule->who))
		return false;
	rule->is_program = rule->who[0] == '/';
	rule->follow_forks = param_bool(parameters, "follow_forks");
	rule->from_start = param_bool(parameters, "from_start");
	rule->frames = param_count(parameters, "frames", FRAMES_LIMIT_DEFAULT);
	rule->has_engine = engine != NULL;
	rule->engine = engine ? engine_kind_by_name(engine) : 0;
	rule->every_ns = param_ms(parameters, "every_ms");
	if (rule->every_ns == 0)
		rule->every_ns = WATCH_EVERY_DEFAULT_MS * 1000000ULL;
	rule->limits.count = param_count(parameters, "keep", WATCH_KEEP_DEFAULT);
	rule->limits.age_ns = param_ms(parameters, "keep_ms");
	rule->limits.bytes = param_bytes(parameters, "keep_bytes");
	rule->rss_bytes = param_bytes(parameters, "rss_limit");
	rule->slope_bytes = param_bytes(parameters, "rss_slope");
	if (rule->frames == 0 || rule->frames > FRAMES_LIMIT_MAX)
		fail_invalid_parameter(call, "frames");
	else if (rule->has_engine && rule->engine < 0)
		fail_invalid_parameter(call, "engine");
	else if (rule->every_ns < WATCH_EVERY_MIN_MS * 1000000ULL)
		fail_invalid_parameter(call, "every_ms");
	else if (rule->from_start && rule->is_program)
		fail_invalid_parameter(call, "from_start");
	else if (rule->from_start && geteuid() != 0)
		fail_not_permitted(call, 0, "systemd's units are changed by root's daemon alone", "ask the system's daemon, as root",
				   0);
	else
		return true;
	return false;
}

static json_t *text_or_null(const char *text)
{
	return text ? codec_bytes(text) : json_null();
}

static void on_done(void *context, const struct watches_answer *answer)
{
	struct call *call = context;
	char who[HISTORY_WHO_MAX];

	call->abandoned = NULL;
	if (!watches_name(param_text(call->parameters, "who", ""), who))
		who[0] = '\0';
	if (answer->refusal)
		fail_unsupported(call, "%s cannot be traced from its start: %s; without --from-start it is traced from a moment "
				 "after that on", who, answer->refusal);
	else
		call_reply(call, json_pack("{s:o, s:o, s:o}", "who", codec_bytes(who), "problem", text_or_null(answer->problem),
					   "drop_in", text_or_null(answer->drop_in)));
}

static void on_client_gone(struct call *call)
{
	watches_nobody_waits(call->daemon->watches, call);
	call_drop(call);
}

/* The rules of the daemon before come first. */
static void watch_when_listed(void *context)
{
	struct history_rule rule = { 0 };
	struct call *call = context;
	int r;

	if (!take_rule(call, &rule))
		return;
	if (call->daemon->stopping) {
		fail(call, "the daemon is ending; try again");
		return;
	}
	/* The answer may come at once, with which the call is gone. */
	call->abandoned = on_client_gone;
	r = watches_add(call->daemon->watches, &rule, on_done, call);
	if (r == 0)
		return;
	call->abandoned = NULL;
	if (r == -ENOSPC)
		fail_limit(call, "watches", "%d rules are there already, and more are not allowed", HISTORY_RULES_MAX);
	else if (r == -EBUSY)
		fail(call, "somebody else is just asking for %s; try again", rule.who);
	else
		fail(call, "%s cannot be watched: %s", rule.who, strerror(-r));
}

void handle_watch(struct call *call)
{
	snapshots_when_listed(call->daemon->snapshots, watch_when_listed, call);
}

/* --- the others --- */

static void on_removed(void *context, const struct watches_answer *answer)
{
	struct call *call = context;

	(void)answer;
	call->abandoned = NULL;
	call_reply(call, json_object());
}

static void unwatch_when_listed(void *context)
{
	struct call *call = context;
	char who[HISTORY_WHO_MAX];

	if (!take_who(call, who))
		return;
	call->abandoned = on_client_gone;
	if (watches_remove(call->daemon->watches, who, on_removed, call) == 0)
		return;
	call->abandoned = NULL;
	call_error(call, "NotWatched", json_pack("{s:o, s:s}", "who", codec_bytes(who), "message",
						 "it is not watched; 'allocwatch watch' shows what is"));
}

void handle_unwatch(struct call *call)
{
	snapshots_when_listed(call->daemon->snapshots, unwatch_when_listed, call);
}

static void list_when_started(void *context)
{
	struct call *call = context;

	call_reply(call, json_pack("{s:o}", "watches", watches_list(call->daemon->watches)));
}

void handle_list_watches(struct call *call)
{
	if (permit_sees_rules(call) || may_rule(call))
		snapshots_when_listed(call->daemon->snapshots, list_when_started, call);
}

static void tell_history(void *context)
{
	struct call *call = context;
	const struct watches *watches = call->daemon->watches;
	char who[HISTORY_WHO_MAX];

	if (!take_who(call, who))
		return;
	if (!watches_knows(watches, who))
		call_error(call, "NotWatched", json_pack("{s:o, s:s}", "who", codec_bytes(who), "message",
							 "it was never watched; 'allocwatch watch' begins that"));
	else
		call_reply(call, json_pack("{s:o, s:o}", "who", codec_bytes(who), "runs",
					   watches_history(watches, permit_viewer(call), who)));
}

void handle_get_history(struct call *call)
{
	snapshots_when_listed(call->daemon->snapshots, tell_history, call);
}
