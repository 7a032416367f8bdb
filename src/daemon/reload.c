#include "daemon/reload.h"

#include "daemon/alarms.h"
#include "daemon/daemon.h"
#include "daemon/debuginfo.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/metrics_serve.h"
#include "daemon/notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reload {
	struct daemon *daemon;
	struct options *options;
	bool running, again;
	/* the job's */
	struct options fresh;
	int error;
};

struct reload *reload_new(struct daemon *daemon, struct options *options)
{
	struct reload *reload = calloc(1, sizeof(*reload));

	if (reload) {
		reload->daemon = daemon;
		reload->options = options;
	}
	return reload;
}

void reload_free(struct reload *reload)
{
	free(reload);
}

/* What was given on the command line does not differ, since it wins each time. */
static void name_changes(const struct options *old, const struct options *fresh)
{
	unsigned count = 0;

	for (const struct setting *setting = settings; setting->key; setting++) {
		if (!setting_differs(setting, old, fresh))
			continue;
		count++;
		if (setting->live)
			log_info("%s= has changed", setting->key);
		else
			log_warning("%s= has changed, which takes effect when the daemon is started again", setting->key);
	}
	if (count == 0)
		log_info("the configuration is what it was");
}

/* Those that a running daemon cannot change keep their old value, so that the next reload tells of them again. */
static int keep_what_stays(const struct options *old, struct options *fresh)
{
	int r = 0;

	for (const struct setting *setting = settings; r == 0 && setting->key; setting++) {
		if (!setting->live)
			r = setting_copy(setting, old, fresh);
	}
	return r;
}

static int put_in_force(struct reload *reload)
{
	struct options *fresh = &reload->fresh;
	struct described described = { 0 };
	int r;

	name_changes(reload->options, fresh);
	r = keep_what_stays(reload->options, fresh);
	if (r == 0)
		r = described_init(&described, fresh->allocators, fresh->hide);
	if (r == 0)
		r = metrics_serve_set(reload->daemon->metrics_serve, fresh);
	if (r == 0)
		r = debuginfo_set_servers(reload->daemon->debuginfo, fresh->debuginfod);
	if (r < 0) {
		described_fini(&described);
		return r;
	}
	daemon_set_described(reload->daemon, &described);
	log_set_level(fresh->log_level);
	reload->daemon->engine = fresh->engine;
	reload->daemon->ptrace = fresh->ptrace;
	reload->daemon->ring_wait_ms = fresh->ring_wait_ms;
	reload->daemon->ring_readers = fresh->ring_readers;
	reload->daemon->sample_bytes = fresh->sample_bytes;
	daemon_set_limits(reload->daemon, &fresh->limits);
	metrics_set_options(reload->daemon->metrics, fresh);
	alarms_set_options(reload->daemon->alarms, &fresh->alarms);
	options_fini(reload->options);
	*reload->options = *fresh;
	memset(fresh, 0, sizeof(*fresh));
	return 0;
}

static void run(void *context)
{
	struct reload *reload = context;

	reload->error = options_read_again(reload->options, &reload->fresh);
}

static void end(struct reload *reload, int error)
{
	if (error == 0)
		error = put_in_force(reload);
	if (error == -EBADMSG)
		log_error("the configuration is wrong, and the old one stays in force");
	else if (error < 0)
		log_error("the configuration cannot be put in force, and the old one stays: %s", strerror(-error));
	options_fini(&reload->fresh);
	memset(&reload->fresh, 0, sizeof(reload->fresh));
	notify_ready();
}

static void on_read(void *context, bool ran)
{
	struct reload *reload = context;

	reload->running = false;
	end(reload, ran ? reload->error : -ECANCELED);
	if (ran && reload->again)
		reload_begin(reload);
}

void reload_begin(struct reload *reload)
{
	int r;

	reload->again = reload->running;
	if (reload->running)
		return;
	notify_reloading();
	log_info("reading the configuration again");
	reload->running = true;
	r = work_submit(reload->daemon->work, run, on_read, reload);
	if (r < 0) {
		reload->running = false;
		end(reload, r);
	}
}
