/* Questions to a tracer, their answers and deadlines. */
#include "daemon/session_private.h"

#include "daemon/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static void question_free(struct question *question)
{
	sd_event_source_disable_unref(question->deadline);
	free(question);
}

/* Takes it off the list first: what it calls may ask again. */
static void settle(struct session *session, size_t i, const struct answer *answer)
{
	struct question *question = session->questions.items[i];

	vec_remove_unordered(&session->questions, i);
	question->answered(question->context, answer);
	question_free(question);
}

static void fail_now(answer_fn answered, void *context, int error)
{
	const struct answer answer = { .error = error };

	answered(context, &answer);
}

void questions_fail(struct session *session, int error)
{
	const struct answer answer = { .error = error };

	while (session->questions.count > 0)
		settle(session, session->questions.count - 1, &answer);
}

/* The first question with this serial; -1 when there is none. */
static ssize_t find(const struct session *session, uint32_t serial)
{
	for (size_t i = 0; i < session->questions.count; i++) {
		if (session->questions.items[i]->serial == serial)
			return (ssize_t)i;
	}
	return -1;
}

void questions_answer(struct session *session, const struct wire_head *message, int *fd)
{
	ssize_t i;

	while ((i = find(session, message->serial)) >= 0) {
		const struct question *question = session->questions.items[i];
		struct answer answer = { .message = message, .fd = fd };

		if (message->type == WIRE_FAILED) {
			answer.error = -EREMOTEIO;
		} else if (message->type != question->expected) {
			if (session_may_log(session))
				log_warning("process %d: its tracer answered with message %" PRIu32 " instead of %d",
					    session->pid, message->type, (int)question->expected);
			answer = (struct answer){ .error = -ECONNRESET };
		}
		settle(session, (size_t)i, &answer);
	}
}

/* A tracer that neither attaches nor detaches in time is of no more use: without its socket it undoes
 * what it has done, and in the end it is killed, which its target survives. */
static int on_deadline(sd_event_source *source, uint64_t usec, void *context)
{
	struct question *question = context;
	struct session *session = question->session;
	enum wire_type expected = question->expected;
	const struct answer answer = { .error = -ETIMEDOUT };

	(void)source;
	(void)usec;
	session->references++;
	for (size_t i = 0; i < session->questions.count; i++) {
		if (session->questions.items[i] != question)
			continue;
		settle(session, i, &answer);
		break;
	}
	if (expected == WIRE_ATTACHED)
		session_end(session, -ETIMEDOUT);
	else if (expected == WIRE_DETACHED)
		session_become_lost(session, "it did not detach in time");
	session_unref(session);
	return 0;
}

static struct question *question_new(struct session *session, uint32_t serial, enum wire_type expected,
				     uint64_t timeout_us)
{
	struct question *question = calloc(1, sizeof(*question));

	if (!question)
		return NULL;
	question->session = session;
	question->serial = serial;
	question->expected = expected;
	if (sd_event_add_time_relative(session->sessions->event, &question->deadline, CLOCK_MONOTONIC, timeout_us,
				       0, on_deadline, question) < 0) {
		free(question);
		return NULL;
	}
	return question;
}

/* 0 or negative errno: then nobody was told anything. */
static int register_question(struct session *session, uint32_t serial, enum wire_type expected,
			     uint64_t timeout_us, answer_fn answered, void *context)
{
	struct question *question, **slot;

	if (session->questions.count >= TRACER_REQUESTS_MAX)
		return -EAGAIN;
	if (vec_reserve(&session->questions, 1) < 0)
		return -ENOMEM;
	question = question_new(session, serial, expected, timeout_us);
	if (!question)
		return -ENOMEM;
	question->answered = answered;
	question->context = context;
	slot = vec_push(&session->questions);
	*slot = question;
	return 0;
}

/* Serial 0 is for what nobody asked for. */
static uint32_t next_serial(struct session *session)
{
	if (++session->last_serial == 0)
		++session->last_serial;
	return session->last_serial;
}

void question_ask(struct session *session, struct wire_head *message, size_t len, int fd,
		  enum wire_type expected, uint64_t timeout_us, answer_fn answered, void *context)
{
	int r;

	if (!session->tracer) {
		fail_now(answered, context, -ECONNRESET);
		return;
	}
	message->serial = next_serial(session);
	message->pid = session->pid;
	message->length = (uint32_t)len;
	r = register_question(session, message->serial, expected, timeout_us, answered, context);
	if (r < 0) {
		fail_now(answered, context, r);
		return;
	}
	r = tracer_send(session->tracer, message, len, fd);
	/* It has hung up, as it does after the end of its process: its last words, still to be read, say which. */
	if (r == -EPIPE)
		return;
	if (r < 0) {
		const struct answer answer = { .error = r == -ENOTCONN ? -ECONNRESET : r };

		settle(session, (size_t)find(session, message->serial), &answer);
	}
}

void session_ask(struct session *session, struct wire_head *message, size_t len, enum wire_type expected,
		 uint64_t timeout_us, answer_fn answered, void *context)
{
	question_ask(session, message, len, -1, expected, timeout_us, answered, context);
}

static void detach(struct session *session, bool keep, answer_fn answered, void *context)
{
	struct wire_head message = { .type = keep ? WIRE_SET_ASIDE : WIRE_DETACH };
	enum session_state before = session->state;
	int r;

	if (session->state != SESSION_DETACHING) {
		session->keeps = keep;
		session->state = SESSION_DETACHING;
		session->detach_serial = session->last_serial + 1 ? session->last_serial + 1 : 1;
		session_ask(session, &message, sizeof(message), WIRE_DETACHED, DETACH_TIMEOUT_US, answered,
			    context);
		if (find(session, session->detach_serial) < 0)
			session->state = before;       /* it could not be asked */
		return;
	}
	r = register_question(session, session->detach_serial, WIRE_DETACHED, DETACH_TIMEOUT_US, answered,
			      context);
	if (r < 0)
		fail_now(answered, context, r);
}

void session_detach(struct session *session, answer_fn answered, void *context)
{
	detach(session, false, answered, context);
}

void session_set_aside(struct session *session, answer_fn answered, void *context)
{
	detach(session, true, answered, context);
}
