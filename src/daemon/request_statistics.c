/* Statistics and Compare: one or two snapshots, a job in a thread, rows in one message or a stream. */
#include "daemon/daemon.h"
#include "daemon/failures.h"
#include "daemon/params.h"
#include "daemon/query.h"
#include "daemon/requests.h"
#include "daemon/resolve.h"
#include "varlink/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct report {
	struct call *call;
	struct query query;
	bool compare, with_diff;
	struct snapshot *older, *newer;       /* older: of a comparison only */
	/* the job's */
	struct statistics *statistics;
	const char *reason;
	int error;
	/* the stream's */
	size_t next, end, step;
};

static void report_free(struct report *report)
{
	snapshot_put(report->older);
	snapshot_put(report->newer);
	statistics_free(report->statistics);
	query_fini(&report->query);
	free(report);
}

/* --- the answer --- */

static json_t *make_rows(const struct report *report, size_t count)
{
	json_t *rows = codec_statistics_rows(report->statistics, report->next, count, report->with_diff);

	return codec_statistics_frame(report->statistics, rows, report->with_diff);
}

static void fail_too_long(struct call *call, const struct report *report, size_t rows)
{
	fail_limit(call, "message size", "%zu of the %zu rows do not fit into a message of 1 MiB; ask for fewer rows, "
					 "for fewer frames, or for a stream", rows, report->statistics->row_count);
}

/* Without a limit of the client's, fewer rows will do: the answer says how many there are. */
static void reply_once(struct report *report)
{
	struct call *call = report->call;
	size_t count = report->end;
	int r = call_try_reply(call, make_rows(report, count));

	while (r == -EMSGSIZE && !report->query.limited && count > 1) {
		count /= 2;
		r = call_try_reply(call, make_rows(report, count));
	}
	if (r == -EMSGSIZE)
		fail_too_long(call, report, count);
	report_free(report);
}

static void end_stream(struct report *report)
{
	report->call->pull = NULL;
	report->call->abandoned = NULL;
	report_free(report);
}

static void on_reader_gone(struct call *call)
{
	end_stream(call->context);
	call_drop(call);
}

/* The next rows, fewer when they do not fit into a message; also in later messages, then. */
static void send_rows(struct call *call)
{
	struct report *report = call->context;
	int r = -EMSGSIZE;

	while (r == -EMSGSIZE && report->step > 0) {
		size_t rest = report->end - report->next;

		if (rest <= report->step) {
			r = call_try_reply(call, make_rows(report, rest));
			if (r == 0) {
				report->call = NULL;        /* it is answered and gone */
				report_free(report);
				return;
			}
			report->step = rest / 2;
		} else {
			r = call_reply_part(call, make_rows(report, report->step));
			if (r == 0) {
				report->next += report->step;
				return;
			}
			report->step /= 2;
		}
	}
	if (r == -EMSGSIZE)
		fail_too_long(call, report, 1);
	else
		fail_memory(call);
	report_free(report);
}

static void stream(struct report *report)
{
	struct call *call = report->call;

	if (!call->conn) {
		end_stream(report);
		call_drop(call);
		return;
	}
	report->step = ROWS_PER_REPLY;
	call->context = report;
	call->pull = send_rows;
	call->abandoned = on_reader_gone;
	send_rows(call);
}

static size_t rows_wanted(const struct report *report)
{
	size_t limit = report->query.limited ? report->query.limit : report->call->more ? 0 : ROWS_DEFAULT;
	size_t all = report->statistics->row_count;

	return limit == 0 || limit > all ? all : limit;
}

/* --- the work --- */

static void run_report(void *context)
{
	struct report *report = context;

	if (report->compare)
		report->error = statistics_compare(report->older, report->newer, &report->query.statistics,
						   &report->statistics, &report->reason);
	else
		report->error = statistics_make(report->newer, &report->query.statistics, &report->statistics,
						&report->reason);
}

static void on_report(void *context, bool ran)
{
	struct report *report = context;
	struct call *call = report->call;

	if (!ran || report->error < 0) {
		if (ran && report->error == -EINVAL)
			fail_query(call, "%s", report->reason);
		else
			fail(call, "%s", ran ? strerror(-report->error) : "the daemon ends");
		report_free(report);
		return;
	}
	report->end = rows_wanted(report);
	if (call->more)
		stream(report);
	else
		reply_once(report);
}

static void start_work(struct report *report)
{
	struct call *call = report->call;
	int r = work_submit(call->daemon->work, run_report, on_report, report);

	if (r == 0)
		return;
	report_free(report);
	if (r == -ENOSPC)
		fail_limit(call, "work", "the daemon has too much to do; try again");
	else
		fail_memory(call);
}

/* --- the snapshots --- */

static void on_newer(void *context, struct snapshot *snapshot)
{
	struct report *report = context;

	if (!snapshot) {
		report_free(report);
		return;
	}
	report->newer = snapshot;
	start_work(report);
}

static void on_older(void *context, struct snapshot *snapshot)
{
	struct report *report = context;

	if (!snapshot) {
		report_free(report);
		return;
	}
	report->older = snapshot;
	resolve_snapshot(report->call, param_text(report->call->parameters, "new", ""), on_newer, report);
}

/* NULL: the call is answered. */
static struct report *report_new(struct call *call, bool compare)
{
	struct report *report = calloc(1, sizeof(*report));
	const char *parameter;
	char *reason;
	int r;

	if (!report) {
		fail_memory(call);
		return NULL;
	}
	report->call = call;
	r = query_parse(json_object_get(call->parameters, "query"), &report->query, &parameter, &reason);
	report->compare = compare;
	report->with_diff = compare && !report->query.statistics.born;
	if (r == 0 && !compare && report->query.statistics.born) {
		query_fini(&report->query);
		free(report);
		fail_query(call, "%s", "what was born between two snapshots is a question for Compare");
		return NULL;
	}
	if (r == 0)
		return report;
	free(report);
	if (parameter)
		fail_invalid_parameter(call, parameter);
	else if (reason)
		fail_query(call, "%s", reason);
	else
		fail_memory(call);
	free(reason);
	return NULL;
}

void handle_statistics(struct call *call)
{
	struct report *report = report_new(call, false);

	if (report)
		resolve_snapshot(call, param_text(call->parameters, "snapshot", ""), on_newer, report);
}

void handle_compare(struct call *call)
{
	struct report *report = report_new(call, true);

	if (report)
		resolve_snapshot(call, param_text(call->parameters, "old", ""), on_older, report);
}
