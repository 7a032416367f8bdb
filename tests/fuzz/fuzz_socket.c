/* The daemon's socket: bytes of a client, from framing and JSON to each method's parameters, filters and patterns. */
#include "daemon.h"
#include "fuzz.h"
#include "json.h"

#include <sys/socket.h>

#define PIECE_MAX 3000           /* so that messages come in parts */

void fuzz_socket_run(const uint8_t *data, size_t len)
{
	struct fuzz_bytes bytes = { data, len };
	struct host host;

	host_start(&host);
	host_settle(&host, host_answer_well);
	MUST(stand_in_tracer());
	while (bytes.left > 0) {
		size_t piece;
		const uint8_t *at = fuzz_take(&bytes, 1 + fuzz_pick(PIECE_MAX), &piece);

		host_send(&host, at, piece);
		host_settle(&host, host_answer_well);
	}
	shutdown(host.client, SHUT_WR);
	host_settle(&host, host_answer_well);
	if (host.replies > 0)
		fuzz_reached(0);
	if (host.replies > host.refused_methods)
		fuzz_reached(1);
	if (host.replies > host.refused_methods + host.refused_parameters)
		fuzz_reached(2);
	if (host.replies > host.errors)
		fuzz_reached(3);
	host_end(&host);
}

/* --- changes that leave it JSON --- */

static const char *const methods[] = {
	"org.varlink.service.GetInfo", "org.varlink.service.GetInterfaceDescription", "org.allocwatch.Tracer.Attach",
	"org.allocwatch.Tracer.Detach", "org.allocwatch.Tracer.List", "org.allocwatch.Tracer.GetStatus",
	"org.allocwatch.Tracer.TakeSnapshot", "org.allocwatch.Tracer.ListSnapshots",
	"org.allocwatch.Tracer.RemoveSnapshots", "org.allocwatch.Tracer.GetSnapshot", "org.allocwatch.Tracer.Statistics",
	"org.allocwatch.Tracer.Compare", "org.allocwatch.Tracer.Trend", "org.allocwatch.Tracer.FindBlock",
	"org.allocwatch.Tracer.Clear", "org.allocwatch.Tracer.ResetPeak", "org.allocwatch.Tracer.WaitGone",
	"org.allocwatch.Tracer.Subscribe",
	"org.allocwatch.Tracer.Metrics", "org.allocwatch.Tracer.Watch", "org.allocwatch.Tracer.Unwatch",
	"org.allocwatch.Tracer.ListWatches", "org.allocwatch.Tracer.GetHistory", "org.allocwatch.Tracer.ListMismatches",
};

static const char *const names[] = {
	"pid", "frames", "domains", "engine", "follow_forks", "from_start", "wait_for_exec", "keep", "name", "blocks", "ids",
	"snapshot", "snapshots", "old", "new", "query", "address", "interface", "key", "cumulative", "filters", "sort",
	"limit", "older_than_ms", "older_than_ns", "born", "churn", "peak", "histogram", "show_runtime", "tables", "format", "who",
	"every_ms", "keep_ms", "keep_bytes", "allocators",
};

#define PICK(list) (list)[fuzz_pick(sizeof(list) / sizeof((list)[0]))]

static void change(json_t *call)
{
	json_t *parameters = json_object_get(call, "parameters"), *query = json_object_get(parameters, "query");

	switch (fuzz_pick(8)) {
	case 0:
		json_object_set_new(call, "method", json_string(PICK(methods)));
		break;
	case 1:
		json_object_set_new(call, fuzz_pick(2) ? "more" : "oneway", json_boolean(fuzz_pick(2)));
		break;
	case 2:
		json_object_del(parameters, PICK(names));
		break;
	case 3:
	case 4:
		fuzz_change_json(parameters);
		break;
	case 5:
		if (json_is_object(query)) {
			json_object_set_new(query, PICK(names), fuzz_pick_json());
			break;
		}
		json_object_set_new(parameters, "query", json_object());
		break;
	default:
		if (!json_is_object(parameters))
			json_object_set_new(call, "parameters", json_object());
		json_object_set_new(json_object_get(call, "parameters"), PICK(names), fuzz_pick_json());
		break;
	}
}

uint8_t *fuzz_socket_restructure(const uint8_t *data, size_t len, size_t *ret_len)
{
	return fuzz_change_message(data, len, 0, change,
				   "{\"method\":\"org.allocwatch.Tracer.GetStatus\",\"parameters\":{\"pid\":1}}", ret_len);
}
