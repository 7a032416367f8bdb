#include "cli/top_fetch.h"

#include "base/clock.h"
#include "cli/answer.h"
#include "cli/fetch.h"
#include "cli/snap.h"
#include "varlink/codec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SPACE 80

struct top_fetch {
	struct session *session;
	pid_t pid;
	uint64_t interval_ns;
	bool blocks;
	enum { IDLE, SNAPSHOT, SAVE } request;
	struct codec_snapshot_reader *reader;
	uint64_t asked_ns, due_ns;
	bool save_wanted;
	char name[NAME_SPACE];
	int sent;                       /* what sending the request returned */
};

struct top_fetch *top_fetch_new(struct session *session, pid_t pid, uint64_t interval_ns, bool blocks)
{
	struct top_fetch *fetch = calloc(1, sizeof(*fetch));

	if (!fetch)
		return NULL;
	fetch->session = session;
	fetch->pid = pid;
	fetch->interval_ns = interval_ns;
	fetch->blocks = blocks;
	return fetch;
}

void top_fetch_free(struct top_fetch *fetch)
{
	if (!fetch)
		return;
	codec_snapshot_reader_free(fetch->reader);
	free(fetch);
}

int top_fetch_descriptor(const struct top_fetch *fetch)
{
	return varlink_client_descriptor(fetch->session->client);
}

uint64_t top_fetch_due_ns(const struct top_fetch *fetch)
{
	return fetch->due_ns;
}

uint64_t top_fetch_asked_ns(const struct top_fetch *fetch)
{
	return fetch->request == IDLE ? 0 : fetch->asked_ns;
}

void top_fetch_hurry(struct top_fetch *fetch)
{
	fetch->due_ns = 0;
}

void top_fetch_pace(struct top_fetch *fetch, uint64_t began_ns, uint64_t now_ns)
{
	uint64_t least = now_ns + (now_ns - began_ns);

	if (fetch->due_ns < least)
		fetch->due_ns = least;
}

bool top_fetch_save(struct top_fetch *fetch, const char *name)
{
	if (fetch->save_wanted || fetch->request == SAVE)
		return false;
	snprintf(fetch->name, sizeof(fetch->name), "%s", name);
	fetch->save_wanted = true;
	return true;
}

/* --- asking --- */

static int send_request(struct top_fetch *fetch, const char *method, json_t *parameters, bool more)
{
	if (!parameters)
		return -ENOMEM;
	fetch->sent = varlink_client_begin(fetch->session->client, method, parameters, more);
	json_decref(parameters);
	return 0;
}

static int ask_for_snapshot(struct top_fetch *fetch)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)fetch->pid);
	fetch->reader = codec_snapshot_reader_new();
	if (!fetch->reader)
		return -ENOMEM;
	fetch->request = SNAPSHOT;
	return send_request(fetch, "GetSnapshot",
			    json_pack("{s:s, s:o*}", "snapshot", pid, "blocks", fetch->blocks ? json_true() : NULL), true);
}

static int ask_to_save(struct top_fetch *fetch)
{
	const char *name = *fetch->name ? fetch->name : NULL;

	fetch->save_wanted = false;
	fetch->request = SAVE;
	return send_request(fetch, "TakeSnapshot", json_pack("{s:i, s:s*}", "pid", (int)fetch->pid, "name", name),
			    false);
}

int top_fetch_begin(struct top_fetch *fetch, uint64_t now_ns, bool refresh)
{
	if (fetch->request != IDLE)
		return 0;
	if (fetch->save_wanted || (refresh && now_ns >= fetch->due_ns))
		fetch->asked_ns = now_ns;
	if (fetch->save_wanted)
		return ask_to_save(fetch);
	return refresh && now_ns >= fetch->due_ns ? ask_for_snapshot(fetch) : 0;
}

/* --- what comes back --- */

static void finish(struct top_fetch *fetch, uint64_t now_ns)
{
	uint64_t took = now_ns - fetch->asked_ns;
	bool refreshed = fetch->request == SNAPSHOT;

	codec_snapshot_reader_free(fetch->reader);
	fetch->reader = NULL;
	fetch->request = IDLE;
	fetch->sent = 0;
	if (refreshed)
		fetch->due_ns = took * 2 > fetch->interval_ns ? now_ns + took : fetch->asked_ns + fetch->interval_ns;
}

static int tell(struct top_news *news, enum top_news_kind kind, const char *text)
{
	news->kind = kind;
	snprintf(news->text, sizeof(news->text), "%s", text);
	return 0;
}

static int tell_error(struct top_news *news, const json_t *error)
{
	const json_t *parameters = json_object_get(error, "parameters");
	const char *text = answer_text(parameters, "reason");
	bool over = session_error_is(error, "NotTraced") || session_error_is(error, "NoSuchProcess") ||
		    session_error_is(error, "NotPermitted");

	if (!*text)
		text = answer_text(parameters, "message");
	if (!*text)
		text = answer_text(error, "error");
	return tell(news, over ? TOP_NEWS_OVER : TOP_NEWS_FAILED, text);
}

static bool reconnect(struct top_fetch *fetch)
{
	struct varlink_client *client;

	if (varlink_client_open(fetch->session->path, &client) < 0)
		return false;
	varlink_client_close(fetch->session->client);
	fetch->session->client = client;
	return true;
}

/* Of the connection itself: nothing more will come. */
static int tell_failure(struct top_news *news, int result)
{
	if (result == -ENOMEM)
		return -ENOMEM;
	return tell(news, TOP_NEWS_CUT, result == -EPIPE ? "the daemon has ended" :
		    result == -EPROTO || result == -EBADMSG ? "the daemon is of another version" : strerror(-result));
}

static int take_piece(struct top_fetch *fetch, const json_t *reply, bool last, struct top_news *news)
{
	const json_t *tables = json_object_get(reply, "tables");
	const char *reason = NULL;
	int r = fetch_take_hidden(tables);

	if (r == 0)
		r = codec_snapshot_reader_feed(fetch->reader, tables);
	if (r == 0 && !last) {
		news->kind = TOP_MORE_COMES;
		return 0;
	}
	if (r == 0)
		r = codec_snapshot_reader_finish(fetch->reader, &news->snapshot, &reason);
	if (r < 0)
		return tell_failure(news, r);
	news->kind = TOP_NEWS_SNAPSHOT;
	return 0;
}

static int take_reply(struct top_fetch *fetch, const json_t *reply, bool last, struct top_news *news)
{
	if (fetch->request == SNAPSHOT)
		return take_piece(fetch, reply, last, news);
	return tell(news, TOP_NEWS_SAVED, answer_text(json_object_get(reply, "snapshot"), "id"));
}

int top_fetch_step(struct top_fetch *fetch, uint64_t now_ns, struct top_news *ret_news)
{
	struct top_news news = { .kind = TOP_NO_NEWS };
	json_t *reply = NULL, *error = NULL;
	int r = fetch->sent;

	if (fetch->request != IDLE && r == 0)
		r = varlink_client_take(fetch->session->client, &reply, &error);
	if (fetch->request == IDLE || r == -EAGAIN) {
		*ret_news = news;
		return 0;
	}
	if (r == -EREMOTEIO)
		r = tell_error(&news, error);
	else if (r == -EPIPE && reconnect(fetch))
		r = tell(&news, TOP_NEWS_FAILED, "the connection was lost, and is made again");
	else if (r < 0)
		r = tell_failure(&news, r);
	else
		r = take_reply(fetch, reply, r == 0, &news);
	json_decref(reply);
	json_decref(error);
	if (r < 0)
		return r;
	if (news.kind != TOP_MORE_COMES)
		finish(fetch, now_ns);
	*ret_news = news;
	return 0;
}
