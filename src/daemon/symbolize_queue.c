#include "daemon/symbolize_queue.h"

#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct symbolize_line {
	struct symbolize_line *next;
	uint32_t owner, uid;
	struct symbolize_job *first, **last;
};

void symbolize_queue_init(struct symbolize_queue *queue)
{
	*queue = (struct symbolize_queue){ .last = &queue->first };
}

void symbolize_queue_fini(struct symbolize_queue *queue)
{
	while (queue->first)
		symbolize_job_free(symbolize_queue_take_first(queue));
}

/* --- lines --- */

static bool is_line_of(const struct symbolize_line *line, const struct file_user *user)
{
	return line->owner == user->owner && line->uid == user->identity.uid;
}

static struct symbolize_line *line_find(const struct symbolize_queue *queue, const struct file_user *user)
{
	struct symbolize_line *line = queue->first;

	while (line && !is_line_of(line, user))
		line = line->next;
	return line;
}

static void line_append(struct symbolize_queue *queue, struct symbolize_line *line)
{
	line->next = NULL;
	*queue->last = line;
	queue->last = &line->next;
}

static struct symbolize_line *line_take_first(struct symbolize_queue *queue)
{
	struct symbolize_line *line = queue->first;

	queue->first = line->next;
	if (!queue->first)
		queue->last = &queue->first;
	return line;
}

static struct symbolize_line *line_add(struct symbolize_queue *queue, const struct file_user *user)
{
	struct symbolize_line *line = calloc(1, sizeof(*line));

	if (!line)
		return NULL;
	line->owner = user->owner;
	line->uid = user->identity.uid;
	line->last = &line->first;
	line_append(queue, line);
	return line;
}

/* --- turns --- */

static void begin_turn(struct symbolize_queue *queue)
{
	queue->turn_began_ns = clock_monotonic_ns();
	if (queue->first)
		symbolize_job_resume(queue->first->first);
}

int symbolize_queue_add(struct symbolize_queue *queue, struct symbolize_job *job)
{
	struct symbolize_line *line = line_find(queue, &job->user);
	bool alone = !queue->first, was_shared = symbolize_queue_is_shared(queue);

	if (!line)
		line = line_add(queue, &job->user);
	if (!line)
		return -ENOMEM;
	job->next = NULL;
	*line->last = job;
	line->last = &job->next;
	if (alone)
		begin_turn(queue);
	else if (!was_shared && symbolize_queue_is_shared(queue))
		queue->turn_began_ns = clock_monotonic_ns();
	return 0;
}

struct symbolize_job *symbolize_queue_first(const struct symbolize_queue *queue)
{
	return queue->first ? queue->first->first : NULL;
}

struct symbolize_job *symbolize_queue_take_first(struct symbolize_queue *queue)
{
	struct symbolize_line *line = queue->first;
	struct symbolize_job *job = line->first;

	line->first = job->next;
	if (!line->first) {
		free(line_take_first(queue));
		begin_turn(queue);
	}
	return job;
}

bool symbolize_queue_is_shared(const struct symbolize_queue *queue)
{
	return queue->first && queue->first->next;
}

bool symbolize_queue_has_others(const struct symbolize_queue *queue, const struct symbolize_job *job)
{
	const struct symbolize_job *first = symbolize_queue_first(queue);

	return symbolize_queue_is_shared(queue) || (first && (first != job || first->next));
}

uint64_t symbolize_queue_turn_ns(const struct symbolize_queue *queue)
{
	return symbolize_queue_is_shared(queue) ? clock_monotonic_ns() - queue->turn_began_ns : 0;
}

void symbolize_queue_next_turn(struct symbolize_queue *queue)
{
	symbolize_job_pause(queue->first->first);
	line_append(queue, line_take_first(queue));
	begin_turn(queue);
}
