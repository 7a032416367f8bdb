/* Statistics, Compare and Trend: snapshots, a job in a thread, rows in one message or a stream. */
#include "daemon/daemon.h"
#include "daemon/failures.h"
#include "daemon/params.h"
#include "daemon/query.h"
#include "daemon/requests.h"
#include "daemon/resolve.h"
#include "model/index.h"
#include "model/trend.h"
#include "varlink/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct report {
	struct call *call;
	struct daemon *daemon;
	struct query query;
	bool with_diff;
	const char *names[TREND_SNAPSHOTS_MAX];     /* the call's */
	struct snapshot *snapshots[TREND_SNAPSHOTS_MAX];
	size_t asked, count;                  /* one: Statistics; two: Compare; more: Trend */
	uint64_t held;                        /* in daemon->trend_bytes */
	uint64_t reserved;                    /* for indexes that the job makes and leaves with these snapshots */
	bool keeps_index[TREND_SNAPSHOTS_MAX];
	/* the job's */
	struct statistics *statistics;        /* the trend's, when it is one */
	struct trend *trend;
	const char *reason;
	int error;
	/* the stream's */
	size_t next, end, step;
	struct codec_rows_writer *writer;     /* when rows go as tables */
};

static void report_free(struct report *report)
{
	for (size_t i = 0; i < report->count; i++)
		snapshot_put(report->snapshots[i]);
	__atomic_fetch_sub(&report->daemon->trend_bytes, report->held, __ATOMIC_RELAXED);
	codec_rows_writer_free(report->writer);
	if (report->trend)
		trend_free(report->trend);
	else
		statistics_free(report->statistics);
	query_fini(&report->query);
	free(report);
}

/* --- the answer --- */

static json_t *make_rows(const struct report *report, size_t count)
{
	json_t *rows = report->trend ? codec_trend_rows(report->trend, report->next, count) :
		codec_statistics_rows(report->statistics, report->next, count, report->with_diff);

	return codec_statistics_frame(report->statistics, rows, report->with_diff);
}

static void fail_too_long(struct call *call, const struct report *report, size_t rows)
{
	fail_limit(call, "message size", "%zu of the %zu rows do not fit into a message of 1 MiB; ask for fewer rows, "
					 "for fewer frames, or for a stream", rows, report->statistics->all_rows);
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

static void send_tables(struct call *call)
{
	struct report *report = call->context;
	bool last = false;
	json_t *reply = codec_statistics_frame(report->statistics, json_array(), report->with_diff);

	if (json_object_set_new(reply, "tables", codec_rows_writer_next(report->writer, &last)) < 0) {
		json_decref(reply);
		end_stream(report);
		fail_memory(call);
	} else if (last) {
		end_stream(report);
		call_reply(call, reply);
	} else if (call_reply_part(call, reply) < 0) {
		end_stream(report);
		fail_memory(call);
	}
}

static void stream_tables(struct report *report)
{
	struct call *call = report->call;

	report->writer = codec_rows_writer_new(report->statistics, report->with_diff);
	if (!report->writer) {
		report_free(report);
		fail_memory(call);
		return;
	}
	if (!call->conn) {
		end_stream(report);
		call_drop(call);
		return;
	}
	call->context = report;
	call->pull = send_tables;
	call->abandoned = on_reader_gone;
	send_tables(call);
}

/* 0: all. */
static size_t rows_wanted(const struct report *report)
{
	return report->query.limited ? report->query.limit : report->call->more ? 0 : ROWS_DEFAULT;
}

static size_t rows_to_send(const struct report *report)
{
	size_t wanted = report->query.statistics.limit, all = report->statistics->row_count;

	return wanted == 0 || wanted > all ? all : wanted;
}

/* --- the work --- */

/* Of the memory that trends may have, all together; also from the threads that make them. */
static bool take_trend_bytes(struct report *report, uint64_t bytes)
{
	uint64_t most = OWNER_SHARE(report->daemon->limits.snapshot_bytes);
	uint64_t *all = &report->daemon->trend_bytes, taken = __atomic_load_n(all, __ATOMIC_RELAXED);

	do {
		if (bytes > most || taken > most - bytes)
			return false;
	} while (!__atomic_compare_exchange_n(all, &taken, taken + bytes, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	report->held += bytes;
	return true;
}

static bool take_for_sizes(void *context, uint64_t bytes)
{
	return take_trend_bytes(context, bytes);
}

static void run_report(void *context)
{
	struct report *report = context;
	const struct trend_room room = { TREND_SIZES_MAX, take_for_sizes, report };
	struct snapshot *const *snapshots = report->snapshots;
	const struct statistics_query *query = &report->query.statistics;

	/* Without memory for one there may still be enough for what is made in its place. */
	for (size_t i = 0; i < report->count; i++) {
		if (report->keeps_index[i])
			(void)snapshot_index_keep(snapshots[i]);
	}
	if (report->count == 1)
		report->error = statistics_make(snapshots[0], query, &report->statistics, &report->reason);
	else if (report->count == 2)
		report->error = statistics_compare(snapshots[0], snapshots[1], query, &report->statistics,
						   &report->reason);
	else
		report->error = trend_make((const struct snapshot *const *)snapshots, report->count, query, &room,
					   &report->trend, &report->reason);
	if (report->trend)
		report->statistics = report->trend->statistics;
}

/* Who asks about a snapshot once asks again. */
static void reserve_indexes(struct report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		uint64_t bytes = snapshot_index_estimate(report->snapshots[i]);

		if (snapshot_index_kept(report->snapshots[i]) ||
		    !snapshots_reserve_spare(report->daemon->snapshots, bytes))
			continue;
		report->keeps_index[i] = true;
		report->reserved += bytes;
	}
}

static void charge_indexes(struct report *report)
{
	snapshots_unreserve(report->daemon->snapshots, report->reserved);
	report->reserved = 0;
	for (size_t i = 0; i < report->count; i++) {
		if (report->keeps_index[i])
			snapshots_charge(report->daemon->snapshots, report->snapshots[i]);
	}
}

static void on_report(void *context, bool ran)
{
	struct report *report = context;
	struct call *call = report->call;

	charge_indexes(report);
	if (!ran || report->error < 0) {
		if (ran && report->error == -EINVAL)
			fail_query(call, "%s", report->reason);
		else if (ran && report->error == -E2BIG)
			fail_limit(call, "trend", "%s", report->reason);
		else
			fail(call, "%s", ran ? strerror(-report->error) : "the daemon ends");
		report_free(report);
		return;
	}
	report->end = rows_to_send(report);
	if (report->query.tables)
		stream_tables(report);
	else if (call->more)
		stream(report);
	else
		reply_once(report);
}

static void start_work(struct report *report)
{
	struct call *call = report->call;
	int r;

	report->query.statistics.limit = rows_wanted(report);
	reserve_indexes(report);
	r = work_submit(call->daemon->work, run_report, on_report, report);
	if (r == 0)
		return;
	charge_indexes(report);
	report_free(report);
	if (r == -ENOSPC)
		fail_limit(call, "work", "the daemon has too much to do; try again");
	else
		fail_memory(call);
}

/* --- the snapshots --- */

/* Few snapshots are there anyway; many for a trend have their share of the memory that snapshots may have, all
 * trends together. */
static bool hold(struct report *report, const struct snapshot *snapshot)
{
	return report->asked < TREND_SNAPSHOTS_LEAST || take_trend_bytes(report, snapshot_memory(snapshot));
}

static void resolve_next(struct report *report);

static void on_snapshot(void *context, struct snapshot *snapshot)
{
	struct report *report = context;
	struct call *call = report->call;

	if (!snapshot) {
		report_free(report);
		return;
	}
	report->snapshots[report->count++] = snapshot;
	if (!hold(report, snapshot)) {
		report_free(report);
		fail_limit(call, "memory", "the snapshots of a trend need more memory than trends may have; ask for fewer, or "
					   "try again when no other trend is made");
	} else if (!call->conn) {
		report_free(report);
		call_drop(call);
	} else if (report->count < report->asked) {
		resolve_next(report);
	} else {
		start_work(report);
	}
}

static void resolve_next(struct report *report)
{
	resolve_snapshot(report->call, report->names[report->count], on_snapshot, report);
}

/* NULL: the call is answered. */
static struct report *report_new(struct call *call)
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
	report->daemon = call->daemon;
	r = query_parse(json_object_get(call->parameters, "query"), &report->query, &parameter, &reason);
	if (r == 0 && report->query.tables && !call->more) {
		report_free(report);
		call_error(call, "org.varlink.service.ExpectedMore", NULL);
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
	struct report *report = report_new(call);

	if (!report)
		return;
	if (report->query.statistics.born) {
		report_free(report);
		fail_query(call, "%s", "what was born between two snapshots is a question for Compare");
		return;
	}
	report->names[0] = param_text(call->parameters, "snapshot", "");
	report->asked = 1;
	resolve_next(report);
}

void handle_compare(struct call *call)
{
	struct report *report = report_new(call);

	if (!report)
		return;
	report->with_diff = !report->query.statistics.born;
	report->names[0] = param_text(call->parameters, "old", "");
	report->names[1] = param_text(call->parameters, "new", "");
	report->asked = 2;
	resolve_next(report);
}

void handle_trend(struct call *call)
{
	const json_t *names = json_object_get(call->parameters, "snapshots");
	struct report *report = report_new(call);

	if (!report)
		return;
	if (report->query.tables) {
		report_free(report);
		fail_query(call, "%s", "rows as tables are of Statistics and Compare only");
		return;
	}
	if (json_array_size(names) < TREND_SNAPSHOTS_LEAST) {
		report_free(report);
		fail_query(call, "a trend needs at least %d snapshots", TREND_SNAPSHOTS_LEAST);
		return;
	}
	if (json_array_size(names) > TREND_SNAPSHOTS_MAX) {
		report_free(report);
		fail_limit(call, "trend snapshots", "a trend can be made of at most %d snapshots", TREND_SNAPSHOTS_MAX);
		return;
	}
	for (; report->asked < json_array_size(names); report->asked++)
		report->names[report->asked] = json_string_value(json_array_get(names, report->asked));
	resolve_next(report);
}
