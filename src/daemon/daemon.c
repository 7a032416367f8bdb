#include "daemon/daemon.h"

#include "daemon/alarms.h"
#include "daemon/broker.h"
#include "daemon/debuginfo.h"
#include "daemon/events.h"
#include "daemon/last_words.h"
#include "daemon/log.h"
#include "daemon/lost.h"
#include "daemon/metrics.h"
#include "daemon/metrics_serve.h"
#include "daemon/module_files.h"
#include "daemon/names_keep.h"
#include "daemon/notify.h"
#include "daemon/permit.h"
#include "daemon/reload.h"
#include "daemon/symbolize.h"
#include "model/hidden_rules.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- when to leave --- */

/* Kept snapshots that could not be written would be lost: then a private daemon stays, too. */
static bool is_busy(const struct daemon *daemon)
{
	return sessions_live_count(daemon->sessions) > 0 || watches_count(daemon->watches) > 0 || server_client_count(daemon->server) > 0 ||
	       !snapshots_are_settled(daemon->snapshots) || intakes_running(daemon->intakes) > 0 ||
	       !watches_are_settled(daemon->watches) || !work_is_idle(daemon->work);
}

static int on_idle(sd_event_source *source, uint64_t usec, void *context)
{
	struct daemon *daemon = context;

	(void)source;
	(void)usec;
	if (is_busy(daemon)) {
		sd_event_source_set_time_relative(daemon->idle_timer, daemon->limits.idle_exit_s * 1000000ULL);
		sd_event_source_set_enabled(daemon->idle_timer, SD_EVENT_ONESHOT);
		return 0;
	}
	log_info("nothing is traced and nobody asks: leaving");
	return sd_event_exit(daemon->event, 0);
}

/* The time begins anew with everything that happens. */
static void restart_idle_timer(struct daemon *daemon)
{
	if (!daemon->idle_timer || daemon->limits.idle_exit_s == 0)
		return;
	sd_event_source_set_time_relative(daemon->idle_timer, daemon->limits.idle_exit_s * 1000000ULL);
	sd_event_source_set_enabled(daemon->idle_timer, SD_EVENT_ONESHOT);
}

/* Not at each change: clients come and go faster than a service manager wants to know. */
static int on_status_time(sd_event_source *source, uint64_t usec, void *context)
{
	struct daemon *daemon = context;

	(void)usec;
	notify_status(sessions_live_count(daemon->sessions), server_client_count(daemon->server),
		      snapshots_count(daemon->snapshots));
	return sd_event_source_set_time_relative(source, STATUS_PERIOD_US);
}

static void changed(struct daemon *daemon)
{
	/* Parts tell of changes while the whole is put together and taken apart, too. */
	if (!daemon->server)
		return;
	sd_event_source_set_enabled(daemon->status_timer, SD_EVENT_ONESHOT);
	watches_look(daemon->watches);
	restart_idle_timer(daemon);
}

static void on_changed(void *context)
{
	changed(context);
}

/* --- what happens, for those who have subscribed --- */

static void on_attached(void *context, const struct session *session)
{
	struct daemon *daemon = context;

	events_attached(daemon->events, session);
	alarms_attached(daemon->alarms, session);
}

static void on_ended(void *context, const struct session *session, const struct ending *ending)
{
	struct daemon *daemon = context;

	events_ended(daemon->events, session, ending);
	alarms_ended(daemon->alarms, session);
}

static void on_limit(void *context, const struct session *session, const char *limit, const char *message)
{
	events_limit(((struct daemon *)context)->events, session_owner(session), session_pid(session),
		     session_start_time(session), limit, message);
}

static void on_kept(void *context, const struct kept *kept)
{
	events_kept(((struct daemon *)context)->events, kept);
}

static void on_makes_way(void *context, const struct kept *kept)
{
	struct kept_facts facts = kept_facts(kept);
	char text[128];

	snprintf(text, sizeof(text), "snapshot %s (%d:%s) makes way for a newer one", kept_id(kept), facts.pid, facts.name);
	events_limit(((struct daemon *)context)->events, kept_owner(kept), facts.pid, facts.start_time, "snapshots", text);
}

/* --- files for the symbolizer --- */

static void on_opened(void *context, int fd)
{
	symbolize_opened(((struct daemon *)context)->symbolize, fd);
}

static void open_file(void *context, const struct file_user *user, const char *path, bool names)
{
	broker_open(((struct daemon *)context)->broker, user, path, names, on_opened, context);
}

static void cancel_file(void *context)
{
	broker_cancel(((struct daemon *)context)->broker);
}

static void on_debuginfo(void *context)
{
	symbolize_debug_arrived(((struct daemon *)context)->symbolize);
}

static int build_debuginfo(struct daemon *daemon, const struct options *options)
{
	struct symbolize_debug debug = { .get = debuginfo_get };
	int r = debuginfo_new(daemon->event, options->fetcher_program, options->fetcher_service, on_debuginfo, daemon,
			      &daemon->debuginfo);

	if (r < 0)
		return r;
	debug.context = daemon->debuginfo;
	symbolize_set_debug(daemon->symbolize, &debug);
	return debuginfo_set_servers(daemon->debuginfo, options->debuginfod);
}

/* --- the end --- */

static void leave_when_all_is_done(struct daemon *daemon)
{
	if (sessions_live_count(daemon->sessions) == 0 && tracers_running(daemon->tracers) == 0 &&
	    intakes_running(daemon->intakes) == 0 && snapshots_are_settled(daemon->snapshots) &&
	    watches_are_settled(daemon->watches))
		sd_event_exit(daemon->event, 0);
}

/* After each event, whichever it was. */
static int on_anything(sd_event_source *source, void *context)
{
	(void)source;
	leave_when_all_is_done(context);
	return 0;
}

/* Its tracer stays as long as it can be heard, which is to be no longer. */
static void leave_unwilling(struct daemon *daemon, const struct wire_failed *failed)
{
	struct session *session = sessions_find(daemon->sessions, failed->head.pid);

	log_warning("%s", failed->text);
	if (session)
		session_abandon(session);
}

static void on_let_go(void *context, const struct answer *answer)
{
	const struct wire_detached *detached = (const struct wire_detached *)answer->message;

	if (answer->error == -EREMOTEIO)
		leave_unwilling(context, (const struct wire_failed *)answer->message);
	else if (answer->error == 0 && !detached->clean)
		log_warning("process %d: something was left behind: %s", detached->head.pid, detached->text);
	else if (answer->error < 0 && answer->error != -ESRCH)
		log_warning("a process was not let go as asked: %s", strerror(-answer->error));
}

static void let_go(struct daemon *daemon, struct session *session)
{
	switch (session_state(session)) {
	case SESSION_TRACING:
	case SESSION_DETACHING:
	case SESSION_KEPT:
		session_detach(session, on_let_go, daemon);
		break;
	case SESSION_ATTACHING:
		session_abandon(session);
		break;
	case SESSION_ENDING:
	case SESSION_LOST:
		break;
	}
}

static int leave_at_once(struct daemon *daemon)
{
	daemon->in_a_hurry = true;
	return sd_event_exit(daemon->event, 0);
}

static int on_stop_timeout(sd_event_source *source, uint64_t usec, void *context)
{
	struct daemon *daemon = context;

	(void)source;
	(void)usec;
	log_error("%zu processes were not let go in time; their tracers do that when the daemon is gone",
		  sessions_live_count(daemon->sessions));
	return leave_at_once(daemon);
}

static void stop(struct daemon *daemon)
{
	daemon->stopping = true;
	notify_stopping();
	debuginfo_stop(daemon->debuginfo);
	server_stop_listening(daemon->server);
	lost_stop(daemon->lost);
	watches_stop(daemon->watches);
	sd_event_add_time_relative(daemon->event, &daemon->stop_timer, CLOCK_MONOTONIC, STOP_TIMEOUT_US, 0,
				   on_stop_timeout, daemon);
	sd_event_add_post(daemon->event, &daemon->stop_check, on_anything, daemon);
	/* From the end: letting one go may take it out of the list. */
	for (size_t i = sessions_count(daemon->sessions); i-- > 0;) {
		if (i < sessions_count(daemon->sessions))
			let_go(daemon, sessions_get(daemon->sessions, i));
	}
	leave_when_all_is_done(daemon);
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *si, void *context)
{
	struct daemon *daemon = context;

	(void)source;
	(void)si;
	if (!daemon->stopping)
		reload_begin(daemon->reload);
	return 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *context)
{
	struct daemon *daemon = context;

	(void)source;
	if (daemon->stopping) {
		log_warning("signal %u again, from process %u: leaving at once", si->ssi_signo, si->ssi_pid);
		return leave_at_once(daemon);
	}
	log_info("signal %u from process %u: letting %zu processes go", si->ssi_signo, si->ssi_pid,
		 sessions_live_count(daemon->sessions));
	stop(daemon);
	return 0;
}

/* --- the limits of a configuration that was read again --- */

/* The timer is there from the start, so that a reload can set it going. */
static void set_idle_exit(struct daemon *daemon, unsigned idle_exit_s)
{
	daemon->limits.idle_exit_s = idle_exit_s;
	if (idle_exit_s == 0)
		sd_event_source_set_enabled(daemon->idle_timer, SD_EVENT_OFF);
	else
		restart_idle_timer(daemon);
}

static void reserve_descriptors(const struct daemon *daemon)
{
	module_files_set_limit(DESCRIPTORS_RESERVED(daemon->limits.clients, daemon->limits.sessions));
}

void daemon_set_limits(struct daemon *daemon, const struct limits *limits)
{
	sessions_set_max(daemon->sessions, limits->sessions);
	server_set_max_clients(daemon->server, limits->clients);
	snapshots_set_limits(daemon->snapshots, limits);
	intakes_set_max_bytes(daemon->intakes, limits->snapshot_bytes);
	daemon->limits = *limits;
	reserve_descriptors(daemon);
	set_idle_exit(daemon, limits->idle_exit_s);
}

void daemon_set_described(struct daemon *daemon, struct described *described)
{
	hidden_rules_put_in_force(described->rules);
	described->rules = NULL;
	daemon->allocators = described->allocators;
}

/* --- the whole --- */

/* Children are waited for by the event loop, so SIGCHLD must be blocked as the others are. */
int daemon_hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	signal(SIGPIPE, SIG_IGN);
	return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

static int catch_signals(struct daemon *daemon)
{
	int r = sd_event_add_signal(daemon->event, NULL, SIGTERM, on_signal, daemon);

	if (r >= 0)
		r = sd_event_add_signal(daemon->event, NULL, SIGINT, on_signal, daemon);
	if (r >= 0)
		r = sd_event_add_signal(daemon->event, NULL, SIGHUP, on_reload, daemon);
	return r;
}

static int build(struct daemon *daemon, struct options *options)
{
	const struct limits *limits = &daemon->limits;
	const struct sessions_owner owner = {
		.context = daemon, .image = last_words_take, .changed = on_changed,
		.attached = on_attached, .ended = on_ended, .limit = on_limit,
		.refuge = lost_refuge, .leave_refuge = lost_leave_refuge, .seek_refuge = lost_seek_refuge,
	};
	const struct symbolize_opener opener = { daemon, open_file, cancel_file };
	const struct snapshots_owner keeper = { daemon, on_kept, on_makes_way };
	struct described described;
	int r;

	if ((r = described_init(&described, options->allocators, options->hide)) < 0)
		return r;
	daemon_set_described(daemon, &described);
	if ((r = sd_event_default(&daemon->event)) < 0 || (r = catch_signals(daemon)) < 0 ||
	    (r = sd_event_set_watchdog(daemon->event, true)) < 0 ||
	    (r = events_new(&daemon->events)) < 0 ||
	    (r = work_new(daemon->event, &daemon->work)) < 0 ||
	    (r = symbolize_new(daemon->event, options->symbolizer_program, &daemon->symbolize)) < 0 ||
	    (r = snapshots_new(daemon->work, options->state_folder, limits, &keeper, &daemon->snapshots)) < 0 ||
	    (r = intakes_new(daemon->work, daemon->symbolize, daemon->snapshots, limits->snapshot_bytes,
			     &daemon->intakes)) < 0 ||
	    (r = tracers_new(daemon->event, options->tracer_program, options->tracer_service, on_changed, daemon,
			     &daemon->tracers)) < 0 ||
	    (r = sessions_new(daemon->event, daemon->tracers, limits->sessions, &owner, &daemon->sessions)) < 0)
		return r;
	r = broker_new(daemon->event, daemon->tracers, &daemon->broker);
	if (r < 0)
		return r;
	symbolize_set_opener(daemon->symbolize, &opener);
	r = names_keep_new(daemon->event, daemon->work, daemon->symbolize, snapshots_folder(daemon->snapshots),
			   &daemon->names_keep);
	if (r == 0)
		r = build_debuginfo(daemon, options);
	if (r < 0)
		return r;
	daemon->lost = lost_new(daemon);
	daemon->reload = reload_new(daemon, options);
	r = metrics_new(daemon, options, &daemon->metrics);
	if (r < 0)
		return r;
	r = daemon->lost && daemon->reload ? watches_new(daemon, &daemon->watches) : -ENOMEM;
	return r < 0 ? r : alarms_new(daemon, &options->alarms, &daemon->alarms);
}

static int add_timers(struct daemon *daemon)
{
	int r = sd_event_add_time_relative(daemon->event, &daemon->status_timer, CLOCK_MONOTONIC, 0, 0,
					   on_status_time, daemon);

	if (r >= 0)
		r = sd_event_add_time_relative(daemon->event, &daemon->idle_timer, CLOCK_MONOTONIC,
					       daemon->limits.idle_exit_s * 1000000ULL, 0, on_idle, daemon);
	if (r >= 0)
		set_idle_exit(daemon, daemon->limits.idle_exit_s);
	return r;
}

int daemon_new(struct options *options, int listen_fd, int metrics_fd, const char *address, struct daemon **ret)
{
	struct daemon *daemon = calloc(1, sizeof(*daemon));
	int r = -ENOMEM;

	if (daemon) {
		daemon->limits = options->limits;
		daemon->engine = options->engine;
		daemon->ptrace = options->ptrace;
		daemon->ring_wait_ms = options->ring_wait_ms;
		daemon->ring_readers = options->ring_readers;
		daemon->sample_bytes = options->sample_bytes;
		daemon->heals = !options->line.private_daemon && options->heal_at_start;
		daemon->serves_all = !options->line.private_daemon && geteuid() == 0;
		daemon->readers = permit_readers();
		daemon->address = strdup(address);
		r = daemon->address ? build(daemon, options) : -ENOMEM;
	}
	if (r >= 0)
		r = add_timers(daemon);
	if (r >= 0)
		r = server_new(daemon->event, listen_fd, daemon->limits.clients, daemon, changed, &daemon->server);
	else
		close(listen_fd);
	if (r >= 0)
		r = metrics_serve_new(daemon, options, metrics_fd, &daemon->metrics_serve);
	else if (metrics_fd >= 0)
		close(metrics_fd);
	if (r < 0) {
		log_error("the daemon cannot be set up: %s", strerror(-r));
		daemon_free(daemon);
		return r;
	}
	reserve_descriptors(daemon);
	*ret = daemon;
	return 0;
}

/* Clients first, so that nothing is answered any more; then what works for sessions and snapshots. */
void daemon_free(struct daemon *daemon)
{
	struct server *server;

	if (!daemon)
		return;
	server = daemon->server;
	daemon->server = NULL;          /* changes are of no interest any more */
	server_free(server);
	metrics_serve_free(daemon->metrics_serve);
	metrics_stop(daemon->metrics);
	lost_stop(daemon->lost);
	watches_stop(daemon->watches);
	alarms_free(daemon->alarms);
	daemon->alarms = NULL;          /* sessions tell of their ends */
	sessions_free(daemon->sessions);
	broker_free(daemon->broker);
	tracers_free(daemon->tracers);
	work_free(daemon->work);
	names_keep_free(daemon->names_keep);
	symbolize_free(daemon->symbolize);
	debuginfo_free(daemon->debuginfo);
	snapshots_free(daemon->snapshots);
	intakes_free(daemon->intakes);
	lost_free(daemon->lost);
	reload_free(daemon->reload);
	watches_free(daemon->watches);
	metrics_free(daemon->metrics);
	events_free(daemon->events);
	sd_event_source_disable_unref(daemon->status_timer);
	sd_event_source_disable_unref(daemon->idle_timer);
	sd_event_source_disable_unref(daemon->stop_timer);
	sd_event_source_disable_unref(daemon->stop_check);
	sd_event_unref(daemon->event);
	free(daemon->address);
	free(daemon);
}

int daemon_run(struct daemon *daemon)
{
	int r;

	/* What an earlier one has left that died together with its tracers.  A private daemon is started too often
	 * for that; it heals what it attaches to. */
	if (daemon->heals)
		tracers_heal(daemon->tracers, 0);
	notify_ready();
	changed(daemon);
	r = sd_event_loop(daemon->event);
	if (r < 0)
		log_error("the event loop failed: %s", strerror(-r));
	return r < 0 ? r : daemon->in_a_hurry;
}
