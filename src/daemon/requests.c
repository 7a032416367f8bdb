#include "config.h"

#include "daemon/requests.h"

#include "daemon/conn.h"
#include "daemon/failures.h"
#include "daemon/params.h"
#include "daemon/permit.h"
#include "varlink/codec.h"
#include "varlink/interface.h"

#include <string.h>

static const struct param no_params[] = { { 0 } };
static const struct param metrics_params[] = { { "format", PARAM_TEXT, true }, { 0 } };
static const struct param pid_params[] = { { "pid", PARAM_PID, false }, { 0 } };
static const struct param interface_params[] = { { "interface", PARAM_TEXT, false }, { 0 } };
static const struct param attach_params[] = {
	{ "pid", PARAM_PID, false },	     { "frames", PARAM_COUNT, true },
	{ "domains", PARAM_TEXT, true },     { "engine", PARAM_TEXT, true },
	{ "ring_readers", PARAM_COUNT, true },
	{ "ring_wait_ms", PARAM_COUNT, true }, { "release", PARAM_BOOL, true },
	{ "hold", PARAM_BOOL, true },
	{ "sample_bytes", PARAM_COUNT, true },
	{ "follow_forks", PARAM_BOOL, true }, { "wait_for_exec", PARAM_BOOL, true },
	{ "allocators", PARAM_TEXTS, true }, { 0 }
};
static const struct param detach_params[] = {
	{ "pid", PARAM_PID, false }, { "keep", PARAM_BOOL, true }, { 0 }
};
static const struct param take_params[] = {
	{ "pid", PARAM_PID, false }, { "name", PARAM_TEXT, true }, { "blocks", PARAM_BOOL, true }, { 0 }
};
static const struct param subscribe_params[] = { { "pid", PARAM_PID, true }, { 0 } };
static const struct param list_params[] = { { "pid", PARAM_PID, true }, { 0 } };
static const struct param ids_params[] = { { "ids", PARAM_TEXTS, false }, { 0 } };
static const struct param snapshot_params[] = { { "snapshot", PARAM_TEXT, false }, { "blocks", PARAM_BOOL, true }, { 0 } };
static const struct param statistics_params[] = {
	{ "snapshot", PARAM_TEXT, false }, { "query", PARAM_OBJECT, true }, { "blocks", PARAM_BOOL, true }, { 0 }
};
static const struct param compare_params[] = {
	{ "old", PARAM_TEXT, false }, { "new", PARAM_TEXT, false }, { "query", PARAM_OBJECT, true },
	{ "blocks", PARAM_BOOL, true }, { 0 }
};
static const struct param trend_params[] = {
	{ "snapshots", PARAM_TEXTS, false }, { "query", PARAM_OBJECT, true }, { 0 }
};
static const struct param block_params[] = {
	{ "pid", PARAM_PID, false }, { "address", PARAM_TEXT, false }, { 0 }
};

static const struct param who_params[] = { { "who", PARAM_TEXT, false }, { 0 } };
static const struct param watch_params[] = {
	{ "who", PARAM_TEXT, false },	  { "every_ms", PARAM_MS, true },
	{ "keep", PARAM_COUNT, true },	  { "keep_ms", PARAM_MS, true },
	{ "keep_bytes", PARAM_BYTES, true }, { "frames", PARAM_COUNT, true },
	{ "rss_limit", PARAM_BYTES, true }, { "rss_slope", PARAM_BYTES, true },
	{ "engine", PARAM_TEXT, true },
	{ "follow_forks", PARAM_BOOL, true }, { "from_start", PARAM_BOOL, true }, { 0 }
};

static void handle_get_info(struct call *call)
{
	call_reply(call, json_pack("{s:s, s:s, s:s, s:s, s:[s, s]}", "vendor", "allocwatch", "product",
				   "allocwatchd", "version", PACKAGE_VERSION, "url", "", "interfaces",
				   VARLINK_SERVICE_INTERFACE, VARLINK_OWN_INTERFACE));
}

static void handle_get_interface_description(struct call *call)
{
	const char *interface = param_text(call->parameters, "interface", "");
	const char *description = varlink_interface_description(interface);

	if (description)
		call_reply(call, json_pack("{s:s}", "description", description));
	else
		call_error(call, VARLINK_SERVICE_INTERFACE ".InterfaceNotFound",
			   json_pack("{s:s}", "interface", interface));
}

static const struct method {
	const char *interface, *name;
	const struct param *params;
	void (*handle)(struct call *call);
	bool reads;                  /* changes nothing: for members of the group of readers, too */
} methods[] = {
	{ VARLINK_SERVICE_INTERFACE, "GetInfo", no_params, handle_get_info, true },
	{ VARLINK_SERVICE_INTERFACE, "GetInterfaceDescription", interface_params,
	  handle_get_interface_description, true },
	{ VARLINK_OWN_INTERFACE, "Attach", attach_params, handle_attach, false },
	{ VARLINK_OWN_INTERFACE, "Detach", detach_params, handle_detach, false },
	{ VARLINK_OWN_INTERFACE, "List", no_params, handle_list, true },
	{ VARLINK_OWN_INTERFACE, "GetStatus", pid_params, handle_get_status, true },
	{ VARLINK_OWN_INTERFACE, "TakeSnapshot", take_params, handle_take_snapshot, false },
	{ VARLINK_OWN_INTERFACE, "ListSnapshots", list_params, handle_list_snapshots, true },
	{ VARLINK_OWN_INTERFACE, "RemoveSnapshots", ids_params, handle_remove_snapshots, false },
	{ VARLINK_OWN_INTERFACE, "GetSnapshot", snapshot_params, handle_get_snapshot, true },
	{ VARLINK_OWN_INTERFACE, "Statistics", statistics_params, handle_statistics, true },
	{ VARLINK_OWN_INTERFACE, "Compare", compare_params, handle_compare, true },
	{ VARLINK_OWN_INTERFACE, "Trend", trend_params, handle_trend, true },
	{ VARLINK_OWN_INTERFACE, "ListMismatches", pid_params, handle_list_mismatches, true },
	{ VARLINK_OWN_INTERFACE, "FindBlock", block_params, handle_find_block, true },
	{ VARLINK_OWN_INTERFACE, "Clear", pid_params, handle_clear, false },
	{ VARLINK_OWN_INTERFACE, "ResetPeak", pid_params, handle_reset_peak, false },
	{ VARLINK_OWN_INTERFACE, "Metrics", metrics_params, handle_metrics, true },
	{ VARLINK_OWN_INTERFACE, "WaitGone", pid_params, handle_wait_gone, true },
	{ VARLINK_OWN_INTERFACE, "Subscribe", subscribe_params, handle_subscribe, true },
	{ VARLINK_OWN_INTERFACE, "Watch", watch_params, handle_watch, false },
	{ VARLINK_OWN_INTERFACE, "Unwatch", who_params, handle_unwatch, false },
	{ VARLINK_OWN_INTERFACE, "ListWatches", no_params, handle_list_watches, true },
	{ VARLINK_OWN_INTERFACE, "GetHistory", who_params, handle_get_history, true },
};

static const struct method *find_method(const char *interface, size_t interface_len, const char *name,
					bool *ret_known)
{
	*ret_known = false;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strlen(methods[i].interface) != interface_len ||
		    strncmp(methods[i].interface, interface, interface_len) != 0)
			continue;
		*ret_known = true;
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	}
	return NULL;
}

/* NULL: the error was sent. */
static const struct method *look_up(struct call *call, const char *full)
{
	const char *dot = strrchr(full, '.');
	const struct method *method;
	bool known;

	if (!dot) {
		fail_invalid_parameter(call, "method");
		return NULL;
	}
	method = find_method(full, (size_t)(dot - full), dot + 1, &known);
	if (method)
		return method;
	if (known)
		call_error(call, VARLINK_SERVICE_INTERFACE ".MethodNotFound", json_pack("{s:s}", "method", full));
	else
		call_error(call, VARLINK_SERVICE_INTERFACE ".InterfaceNotFound",
			   json_pack("{s:s%}", "interface", full, (size_t)(dot - full)));
	return NULL;
}

static void run(struct call *call, const char *full)
{
	const struct method *method = look_up(call, full);
	const char *wrong;

	if (!method)
		return;
	if (strcmp(method->interface, VARLINK_OWN_INTERFACE) == 0 && !permit_peer(call->daemon, call->peer.uid)) {
		permit_refuse(call, param_pid(call->parameters, "pid", 0));
		return;
	}
	call->reads = method->reads;
	wrong = params_check(call->parameters, method->params);
	if (wrong)
		fail_invalid_parameter(call, wrong);
	else
		method->handle(call);
}

/* A flag of the call itself: absent means false. */
static bool take_flag(const json_t *message, const char *name, bool *ret_flag)
{
	const json_t *value = json_object_get(message, name);

	*ret_flag = json_is_true(value);
	return !value || json_is_boolean(value);
}

bool requests_dispatch(struct daemon *daemon, struct conn *conn, const json_t *message)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	json_t *parameters = json_object_get(message, "parameters");
	bool more, oneway, upgrade;
	struct call *call;

	if (!method || !take_flag(message, "more", &more) || !take_flag(message, "oneway", &oneway) ||
	    !take_flag(message, "upgrade", &upgrade))
		return false;
	if (json_is_null(parameters))
		parameters = NULL;
	if (parameters && !json_is_object(parameters))
		return false;
	call = conn_begin(conn, daemon, parameters, more, oneway);
	if (!call)
		return false;
	/* No method turns its connection into something else. */
	if (upgrade)
		fail_invalid_parameter(call, "upgrade");
	else
		run(call, method);
	return true;
}
