#include "daemon/alarms.h"

#include "base/clock.h"
#include "base/vec.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/memory_files.h"
#include "model/alarm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

struct guarded {
	struct alarms *alarms;
	int pid;
	uint64_t start_time;
	struct memory_files files;
	struct alarm alarm;
	sd_event_source *events, *pressure;
};

struct alarms {
	struct daemon *daemon;
	struct alarm_options options;
	sd_event_source *timer;
	VEC_OF(struct guarded *) list;
};

/* --- one --- */

static struct session *session_of(const struct guarded *guarded)
{
	struct session *session = sessions_find(guarded->alarms->daemon->sessions, guarded->pid);

	return session && session_start_time(session) == guarded->start_time && session_state(session) == SESSION_TRACING ?
	       session : NULL;
}

/* NULL: there are none for it. */
static const char *find_limits(const struct guarded *guarded, struct alarm_limits *ret)
{
	const struct alarm_options *options = &guarded->alarms->options;
	const struct history_rule *rule = watches_rule_of(guarded->alarms->daemon->watches, guarded->pid,
							  guarded->start_time);

	if (!rule && options->whose != ALARMS_OF_ALL)
		return NULL;
	*ret = (struct alarm_limits){
		.rss_bytes = rule && rule->rss_bytes ? rule->rss_bytes : options->rss_bytes,
		.slope_bytes = rule && rule->slope_bytes ? rule->slope_bytes : options->slope_bytes,
		.slope_ns = (uint64_t)options->slope_s * NSEC_PER_SEC,
		.events = options->events,
		.stalled_us = options->stalled_us,
		.least_ns = (uint64_t)options->least_s * NSEC_PER_SEC,
	};
	return rule ? rule->who : "";
}

static void take(const struct guarded *guarded, struct session *session, const char *who, enum alarm_cause cause,
		 uint64_t rss_bytes)
{
	if (session_may_log(session))
		log_notice("%s%sprocess %d, of which %" PRIu64 " MiB are resident: a snapshot is taken (%s)", who,
			   *who ? ": " : "", guarded->pid, rss_bytes >> 20, alarm_name(cause));
	watches_take(guarded->alarms->daemon->watches, session, who, alarm_name(cause));
}

/* At once: the number of a closed descriptor is soon another one's, who would be told no more. */
static void forget_closed(struct guarded *guarded)
{
	if (guarded->files.events < 0)
		guarded->events = sd_event_source_disable_unref(guarded->events);
	if (guarded->files.pressure < 0)
		guarded->pressure = sd_event_source_disable_unref(guarded->pressure);
}

static void look(struct guarded *guarded, bool pressed)
{
	struct alarm_figures figures = { .now_ns = clock_monotonic_ns(), .pressed = pressed };
	struct session *session = session_of(guarded);
	struct alarm_limits limits;
	const char *who = session ? find_limits(guarded, &limits) : NULL;
	enum alarm_cause cause;

	/* Read in any case: a descriptor that is not read stays ready. */
	memory_files_read(&guarded->files, &figures);
	forget_closed(guarded);
	if (!who)
		return;
	cause = alarm_look(&guarded->alarm, &limits, &figures);
	if (cause != ALARM_NONE)
		take(guarded, session, who, cause, figures.rss_bytes);
}

static int on_events(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	(void)source;
	(void)fd;
	(void)revents;
	look(context, false);
	return 0;
}

/* With its cgroup a trigger ends, and would be ready for ever. */
static int on_pressure(sd_event_source *source, int fd, uint32_t revents, void *context)
{
	struct guarded *guarded = context;

	(void)source;
	(void)fd;
	if (revents & EPOLLERR)
		guarded->pressure = sd_event_source_disable_unref(guarded->pressure);
	look(guarded, !(revents & EPOLLERR));
	return 0;
}

/* Where the kernel does not tell, looking from time to time has to do.  *ret: what is counted so far. */
static void open_files(struct guarded *guarded, struct alarm_figures *ret)
{
	struct alarms *alarms = guarded->alarms;
	sd_event *event = alarms->daemon->event;

	memory_files_open(&guarded->files, guarded->pid, MEMORY_FILES_CGROUPS, alarms->options.stalled_us);
	*ret = (struct alarm_figures){ .now_ns = clock_monotonic_ns() };
	memory_files_read(&guarded->files, ret);
	if (guarded->files.events >= 0)
		(void)sd_event_add_io(event, &guarded->events, guarded->files.events, EPOLLPRI, on_events, guarded);
	if (guarded->files.triggers)
		(void)sd_event_add_io(event, &guarded->pressure, guarded->files.pressure, EPOLLPRI, on_pressure, guarded);
}

static void close_files(struct guarded *guarded)
{
	guarded->events = sd_event_source_disable_unref(guarded->events);
	guarded->pressure = sd_event_source_disable_unref(guarded->pressure);
	memory_files_close(&guarded->files);
}

/* As services do that make cgroups of their own for their processes. */
static void follow_cgroup(struct guarded *guarded)
{
	struct alarm_figures first;

	if (!memory_files_have_moved(&guarded->files))
		return;
	close_files(guarded);
	open_files(guarded, &first);
	alarm_count_anew(&guarded->alarm, &first);
}

static void guarded_free(struct guarded *guarded)
{
	close_files(guarded);
	free(guarded);
}

static struct guarded *guarded_new(struct alarms *alarms, const struct session *session)
{
	struct guarded *guarded = calloc(1, sizeof(*guarded));
	struct alarm_figures first;

	if (!guarded)
		return NULL;
	guarded->alarms = alarms;
	guarded->pid = session_pid(session);
	guarded->start_time = session_start_time(session);
	open_files(guarded, &first);
	alarm_init(&guarded->alarm, &first);
	return guarded;
}

/* --- all of them --- */

static int on_look(sd_event_source *source, uint64_t usec, void *context)
{
	struct alarms *alarms = context;

	(void)usec;
	for (size_t i = 0; i < alarms->list.count; i++) {
		follow_cgroup(alarms->list.items[i]);
		look(alarms->list.items[i], false);
	}
	if (alarms->list.count == 0)
		return 0;
	sd_event_source_set_time_relative(source, ALARMS_LOOK_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static size_t place_of(const struct alarms *alarms, const struct session *session)
{
	size_t i = 0;

	while (i < alarms->list.count && (alarms->list.items[i]->pid != session_pid(session) ||
					  alarms->list.items[i]->start_time != session_start_time(session)))
		i++;
	return i;
}

void alarms_attached(struct alarms *alarms, const struct session *session)
{
	struct guarded *guarded, **slot;

	if (!alarms || place_of(alarms, session) < alarms->list.count)
		return;
	guarded = vec_reserve(&alarms->list, 1) < 0 ? NULL : guarded_new(alarms, session);
	if (!guarded) {
		log_error("process %d: no snapshots are taken when memory runs out: %s", session_pid(session), strerror(ENOMEM));
		return;
	}
	slot = vec_push(&alarms->list);
	*slot = guarded;
	if (alarms->list.count > 1)
		return;
	sd_event_source_set_time_relative(alarms->timer, ALARMS_LOOK_US);
	sd_event_source_set_enabled(alarms->timer, SD_EVENT_ONESHOT);
}

void alarms_ended(struct alarms *alarms, const struct session *session)
{
	size_t i = alarms ? place_of(alarms, session) : 0;

	if (!alarms || i == alarms->list.count)
		return;
	guarded_free(alarms->list.items[i]);
	vec_remove_unordered(&alarms->list, i);
}

/* Triggers are ordered anew with what is attached next. */
void alarms_set_options(struct alarms *alarms, const struct alarm_options *options)
{
	alarms->options = *options;
}

int alarms_new(struct daemon *daemon, const struct alarm_options *options, struct alarms **ret)
{
	struct alarms *alarms = calloc(1, sizeof(*alarms));
	int r;

	if (!alarms)
		return -ENOMEM;
	alarms->daemon = daemon;
	alarms->options = *options;
	r = sd_event_add_time_relative(daemon->event, &alarms->timer, CLOCK_MONOTONIC, ALARMS_LOOK_US, 0, on_look, alarms);
	if (r < 0) {
		free(alarms);
		return r;
	}
	sd_event_source_set_enabled(alarms->timer, SD_EVENT_OFF);
	*ret = alarms;
	return 0;
}

void alarms_free(struct alarms *alarms)
{
	if (!alarms)
		return;
	sd_event_source_disable_unref(alarms->timer);
	while (alarms->list.count > 0)
		guarded_free(alarms->list.items[--alarms->list.count]);
	vec_fini(&alarms->list);
	free(alarms);
}
