#include "daemon/work.h"

#include "base/fd.h"
#include "daemon/limits.h"
#include "model/hidden_rules.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct job {
	struct job *next;
	void (*run)(void *context);
	void (*done)(void *context, bool ran);
	void *context;
	struct hidden_rules *rules;     /* a reference */
};

struct queue {
	struct job *first, **end;
};

struct work {
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_t threads[WORK_THREADS];
	unsigned thread_count;
	/* under the lock */
	struct queue waiting, finished;
	bool stop;
	/* of the event loop */
	size_t jobs;                    /* submitted, not yet done */
	int doorbell;
	sd_event_source *source;
};

static void queue_init(struct queue *queue)
{
	queue->first = NULL;
	queue->end = &queue->first;
}

static void queue_put(struct queue *queue, struct job *job)
{
	job->next = NULL;
	*queue->end = job;
	queue->end = &job->next;
}

static struct job *queue_take(struct queue *queue)
{
	struct job *job = queue->first;

	if (!job)
		return NULL;
	queue->first = job->next;
	if (!queue->first)
		queue->end = &queue->first;
	return job;
}

static void ring(struct work *work)
{
	uint64_t one = 1;

	while (write(work->doorbell, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void *work_thread(void *context)
{
	struct work *work = context;
	struct job *job;

	pthread_mutex_lock(&work->lock);
	for (;;) {
		while (!work->stop && !work->waiting.first)
			pthread_cond_wait(&work->more, &work->lock);
		if (work->stop)
			break;
		job = queue_take(&work->waiting);
		pthread_mutex_unlock(&work->lock);
		hidden_rules_see(job->rules);
		job->run(job->context);
		pthread_mutex_lock(&work->lock);
		queue_put(&work->finished, job);
		ring(work);
	}
	pthread_mutex_unlock(&work->lock);
	return NULL;
}

static struct job *take_finished(struct work *work)
{
	struct job *job;

	pthread_mutex_lock(&work->lock);
	job = queue_take(&work->finished);
	pthread_mutex_unlock(&work->lock);
	return job;
}

static void finish(struct work *work, struct job *job, bool ran)
{
	work->jobs--;
	job->done(job->context, ran);
	hidden_rules_unref(job->rules);
	free(job);
}

static int on_doorbell(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	struct work *work = context;
	struct job *job;
	uint64_t count;

	(void)source;
	(void)revents;
	if (read(fd, &count, sizeof(count)) < 0)
		return 0;
	while ((job = take_finished(work)))
		finish(work, job, true);
	return 0;
}

/* Signals are the event loop's. */
static int start_threads(struct work *work)
{
	sigset_t all, before;
	int r = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (r == 0 && work->thread_count < WORK_THREADS) {
		r = -pthread_create(&work->threads[work->thread_count], NULL, work_thread, work);
		if (r == 0)
			work->thread_count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int work_new(sd_event *event, struct work **ret)
{
	struct work *work = calloc(1, sizeof(*work));
	int r;

	if (!work)
		return -ENOMEM;
	pthread_mutex_init(&work->lock, NULL);
	pthread_cond_init(&work->more, NULL);
	queue_init(&work->waiting);
	queue_init(&work->finished);
	work->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = work->doorbell < 0 ? -errno : 0;
	if (r == 0)
		r = sd_event_add_io(event, &work->source, work->doorbell, EPOLLIN, on_doorbell, work);
	if (r >= 0)
		r = start_threads(work);
	if (r < 0) {
		work_free(work);
		return r;
	}
	*ret = work;
	return 0;
}

static void stop_threads(struct work *work)
{
	pthread_mutex_lock(&work->lock);
	work->stop = true;
	pthread_cond_broadcast(&work->more);
	pthread_mutex_unlock(&work->lock);
	while (work->thread_count > 0)
		pthread_join(work->threads[--work->thread_count], NULL);
}

void work_free(struct work *work)
{
	struct job *job;

	if (!work)
		return;
	stop_threads(work);
	while ((job = queue_take(&work->finished)))
		finish(work, job, true);
	while ((job = queue_take(&work->waiting)))
		finish(work, job, false);
	sd_event_source_disable_unref(work->source);
	fd_close(&work->doorbell);
	pthread_cond_destroy(&work->more);
	pthread_mutex_destroy(&work->lock);
	free(work);
}

int work_submit(struct work *work, void (*run)(void *context), void (*done)(void *context, bool ran),
		void *context)
{
	struct job *job;

	if (work->jobs >= WORK_QUEUE_MAX)
		return -ENOSPC;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->run = run;
	job->done = done;
	job->context = context;
	job->rules = hidden_rules_ref();
	work->jobs++;
	pthread_mutex_lock(&work->lock);
	queue_put(&work->waiting, job);
	pthread_cond_signal(&work->more);
	pthread_mutex_unlock(&work->lock);
	return 0;
}

bool work_is_idle(const struct work *work)
{
	return work->jobs == 0;
}
