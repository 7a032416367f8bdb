#include "daemon/shims.h"

#include "base/vec.h"
#include "daemon/log.h"
#include "daemon/shim_file.h"
#include "daemon/shim_plan.h"
#include "shim/shim.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define SYSTEMD "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define MANAGER SYSTEMD ".Manager"
#define PROPERTIES "org.freedesktop.DBus.Properties"
/* Of systemd reading all its units anew. */
#define RELOAD_TIMEOUT_US (60ULL * 1000000)
/* Of writing and reading, until what systemd says is what was written. */
#define TRIES_MAX 4
#define EDIT_FOLDER "/etc/systemd/system"
#define DROP_IN_FOLDER ".d"
#define FOLDER_CHANGES (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_DELETE | IN_ONLYDIR)

struct shim {
	struct shims *shims;
	char *unit, *path;             /* path: of the drop-in */
	char *made_of;                 /* fingerprint of the files that it was made from; NULL: it is none of ours */
	sd_bus_slot *call;
	bool asks_again;
	bool in_force;
	bool loaded;                   /* systemd has read it, or may have */
	bool leaving;                  /* until systemd has read that the drop-in is gone */
	bool gave_up;                  /* until systemd reads its units for somebody else */
	char *refused;                 /* why, the last time */
	unsigned tries;
	VEC_OF(sd_event_source *) folders;
	shims_done_fn done;
	void *done_context;
};

struct shims {
	sd_event *event;
	sd_bus *bus;                   /* NULL: there is none */
	sd_bus_slot *reloading, *reload;
	sd_event_source *soon;         /* looks at all of them */
	bool reload_again;
	unsigned reloads_seen;         /* ends of reloads, somebody else's too, since ours was asked for */
	VEC_OF(struct shim *) list;
};

static void look(struct shim *shim);
static void reload(struct shims *shims);

/* --- one --- */

static void forget_folders(struct shim *shim)
{
	while (shim->folders.count > 0)
		sd_event_source_disable_unref(shim->folders.items[--shim->folders.count]);
}

static void shim_free(struct shim *shim)
{
	sd_bus_slot_unref(shim->call);
	forget_folders(shim);
	vec_fini(&shim->folders);
	free(shim->unit);
	free(shim->path);
	free(shim->made_of);
	free(shim->refused);
	free(shim);
}

static struct shim *find(const struct shims *shims, const char *unit)
{
	for (size_t i = 0; i < shims->list.count; i++) {
		if (strcmp(shims->list.items[i]->unit, unit) == 0)
			return shims->list.items[i];
	}
	return NULL;
}

static void unlist(struct shim *shim)
{
	struct shims *shims = shim->shims;

	for (size_t i = 0; i < shims->list.count; i++) {
		if (shims->list.items[i] == shim) {
			vec_remove_unordered(&shims->list, i);
			return;
		}
	}
}

/* The owner may take others out in this. */
static void tell(struct shim *shim, const char *path, const char *refusal)
{
	shims_done_fn done = shim->done;

	shim->done = NULL;
	if (done)
		done(shim->done_context, path, refusal);
}

static void forget_drop_in(struct shim *shim)
{
	shim_file_remove(shim->path);
	free(shim->made_of);
	shim->made_of = NULL;
	shim->in_force = false;
}

/* Its processes are traced as those of any other rule are: a moment after their start. */
static void give_up(struct shim *shim, const char *why)
{
	bool is_new = !shim->refused || strcmp(shim->refused, why) != 0;
	char *copy = strdup(why);

	forget_folders(shim);
	forget_drop_in(shim);
	shim->gave_up = true;
	free(shim->refused);
	shim->refused = copy;
	if (shim->loaded)
		reload(shim->shims);
	if (!shim->done && is_new)
		log_warning("%s is not traced from its start: %s", shim->unit, why);
	tell(shim, NULL, why);
}

/* --- its files --- */

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* In a folder of units most are other units': own is the unit's name.  One of drop-ins is the unit's alone: own is ".d". */
static bool matters(const char *name, const char *own)
{
	size_t len = strlen(own);

	if (strcmp(own, DROP_IN_FOLDER) == 0)
		return ends_with(name, ".conf");
	return strncmp(name, own, len) == 0 && (name[len] == '\0' || strcmp(name + len, DROP_IN_FOLDER) == 0);
}

/* A package's upgrade has systemd read its files only after they are all there, some time later; by then the drop-in with
 * the old commands must be gone. */
static int on_folder(sd_event_source *source, const struct inotify_event *event, void *context)
{
	struct shim *shim = context;
	const char *name = event->len > 0 ? event->name : "", *own;

	if (!shim->made_of || strncmp(name, SHIM_FILE_NAME, strlen(SHIM_FILE_NAME)) == 0)
		return 0;
	if (sd_event_source_get_description(source, &own) < 0 || !matters(name, own))
		return 0;
	log_notice("%s: %s changes; %s is made anew once systemd has read it", shim->unit, name, shim->path);
	forget_drop_in(shim);
	return 0;
}

/* There the folder of our own drop-in comes and goes. */
static int on_runtime_folder(sd_event_source *source, const struct inotify_event *event, void *context)
{
	return event->len > 0 && ends_with(event->name, DROP_IN_FOLDER) ? 0 : on_folder(source, event, context);
}

/* The source's description says what matters in that folder, see matters(). */
static int watch_folder_of(struct shim *shim, const char *file)
{
	const char *slash = strrchr(file, '/');
	char folder[1024];
	sd_event_source **slot;
	int r;

	if (!slash || (size_t)(slash - file) >= sizeof(folder))
		return 0;
	memcpy(folder, file, (size_t)(slash - file));
	folder[slash - file] = '\0';
	slot = vec_push(&shim->folders);
	if (!slot)
		return -ENOMEM;
	r = sd_event_add_inotify(shim->shims->event, slot, folder, FOLDER_CHANGES,
				 strcmp(folder, SHIM_UNIT_FOLDER) == 0 ? on_runtime_folder : on_folder, shim);
	if (r < 0) {
		shim->folders.count--;
		return r;
	}
	return sd_event_source_set_description(*slot, ends_with(folder, DROP_IN_FOLDER) ? DROP_IN_FOLDER : slash + 1);
}

/* One that cannot be looked at is seen when systemd reads its units. */
static void watch_folders(struct shim *shim, char *const *files)
{
	char edited[sizeof(EDIT_FOLDER) + 256];

	forget_folders(shim);
	for (; files && *files; files++)
		watch_folder_of(shim, *files);
	/* Where "systemctl edit" puts what is new. */
	if (snprintf(edited, sizeof(edited), EDIT_FOLDER "/%s", shim->unit) < (int)sizeof(edited))
		watch_folder_of(shim, edited);
}

/* --- what systemd says --- */

static void write_drop_in(struct shim *shim, const struct shim_plan *plan)
{
	char *text = NULL, reason[192];
	int r;

	free(shim->made_of);
	shim->made_of = shim_file_fingerprint(plan->files, shim->path);
	r = shim->made_of ? exec_start_drop_in(&plan->start, shim->unit, SHIM_PATH, plan->allow_shim, &text) : -ENOMEM;
	/* Before it is read anew what it was made from must not change unseen. */
	if (r == 0)
		watch_folders(shim, plan->files);
	if (r == 0)
		r = shim_file_write(shim->path, text);
	free(text);
	shim->loaded = true;
	if (r == 0) {
		reload(shim->shims);
		return;
	}
	snprintf(reason, sizeof(reason), "%s cannot be written: %s", shim->path,
		 r == -E2BIG ? "its commands are too long" : strerror(-r));
	give_up(shim, reason);
}

static bool is_as_made(const struct shim *shim, const struct shim_plan *plan)
{
	char *now = shim_file_fingerprint(plan->files, shim->path);
	bool same = now && shim->made_of && strcmp(now, shim->made_of) == 0 && shim_file_exists(shim->path);

	free(now);
	return same;
}

/* From what is to what should be, one step; the next one comes when systemd has read its units. */
static void step(struct shim *shim, const struct shim_plan *plan)
{
	bool has_shim = exec_start_has_shim(&plan->start, SHIM_PATH);

	shim->loaded = has_shim;
	if (plan->needs_reload && ++shim->tries <= TRIES_MAX) {
		reload(shim->shims);
	} else if (has_shim && !*plan->refusal && is_as_made(shim, plan)) {
		if (!shim->in_force)
			log_info("%s is traced from its start from its next one on, by %s", shim->unit, shim->path);
		shim->in_force = true;
		shim->tries = 0;
		free(shim->refused);
		shim->refused = NULL;
		tell(shim, shim->path, NULL);
	} else if (*plan->refusal) {
		give_up(shim, plan->refusal);
	} else if (++shim->tries > TRIES_MAX) {
		give_up(shim, "its files change all the time");
	} else if (has_shim && shim->tries > 1 && !shim->made_of) {
		give_up(shim, "its ExecStart= has " SHIM_NAME " already, by a file that is not the daemon's");
	} else if (has_shim) {
		forget_drop_in(shim);
		reload(shim->shims);
	} else if (shim->made_of && is_as_made(shim, plan)) {
		give_up(shim, "a drop-in whose name comes after " SHIM_FILE_NAME " sets ExecStart=");
	} else {
		write_drop_in(shim, plan);
	}
}

static int on_properties(sd_bus_message *reply, void *context, sd_bus_error *ret_error)
{
	struct shim *shim = context;
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	struct shim_plan plan;
	int r;

	(void)ret_error;
	shim->call = sd_bus_slot_unref(shim->call);
	if (shim->leaving)
		return 0;
	if (error) {
		give_up(shim, error->message ? error->message : "systemd does not answer");
		return 0;
	}
	if (shim->asks_again) {
		look(shim);
		return 0;
	}
	r = shim_plan_read(reply, SHIM_PATH, &plan);
	if (r < 0) {
		give_up(shim, r == -EBADMSG ? "what systemd says of it is not understood" : strerror(-r));
		return 0;
	}
	step(shim, &plan);
	shim_plan_fini(&plan);
	return 0;
}

static void look(struct shim *shim)
{
	char *object = NULL;
	int r;

	shim->asks_again = shim->call != NULL;
	if (shim->call || !shim->shims->bus || shim->leaving || shim->gave_up)
		return;
	r = sd_bus_path_encode(SYSTEMD_PATH "/unit", shim->unit, &object);
	if (r >= 0)
		r = sd_bus_call_method_async(shim->shims->bus, &shim->call, SYSTEMD, object, PROPERTIES, "GetAll",
					     on_properties, shim, "s", "");
	free(object);
	if (r < 0)
		give_up(shim, strerror(-r));
}

/* --- all of them --- */

static void leave(struct shim *shim)
{
	unlist(shim);
	tell(shim, NULL, NULL);
	shim_free(shim);
}

static void finish_leaving(struct shims *shims)
{
	for (size_t i = shims->list.count; i-- > 0;) {
		if (i < shims->list.count && shims->list.items[i]->leaving)
			leave(shims->list.items[i]);
	}
}

static void look_at_all(struct shims *shims)
{
	for (size_t i = shims->list.count; i-- > 0;) {
		if (i < shims->list.count)
			look(shims->list.items[i]);
	}
}

static int on_soon(sd_event_source *source, void *context)
{
	(void)source;
	look_at_all(context);
	return 0;
}

/* What the drop-ins were made from, and what was refused, may be another thing now. */
static void begin_anew(struct shims *shims)
{
	for (size_t i = 0; i < shims->list.count; i++) {
		shims->list.items[i]->gave_up = false;
		shims->list.items[i]->tries = 0;
	}
}

/* systemd says that a reload has ended before it answers who has asked for it. */
static int on_reloaded(sd_bus_message *reply, void *context, sd_bus_error *ret_error)
{
	struct shims *shims = context;
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	bool others = shims->reloads_seen > (error ? 0 : 1);

	(void)ret_error;
	if (others)
		begin_anew(shims);
	shims->reload = sd_bus_slot_unref(shims->reload);
	if (error)
		log_warning("systemd does not read its units anew: %s", error->message ? error->message : error->name);
	if (shims->reload_again) {
		reload(shims);
		return 0;
	}
	finish_leaving(shims);
	look_at_all(shims);
	return 0;
}

/* Many changes are one reload; one that is under way may have read too early. */
static void reload(struct shims *shims)
{
	sd_bus_message *call = NULL;
	int r;

	shims->reload_again = shims->reload != NULL;
	if (shims->reload || !shims->bus)
		return;
	r = sd_bus_message_new_method_call(shims->bus, &call, SYSTEMD, SYSTEMD_PATH, MANAGER, "Reload");
	if (r >= 0)
		r = sd_bus_call_async(shims->bus, &shims->reload, call, on_reloaded, shims, RELOAD_TIMEOUT_US);
	sd_bus_message_unref(call);
	shims->reloads_seen = 0;
	if (r < 0)
		log_warning("systemd cannot be asked to read its units anew: %s", strerror(-r));
}

/* Somebody has had systemd read its units; or we have, or both, which shows when ours is answered. */
static int on_reloading(sd_bus_message *signal, void *context, sd_bus_error *ret_error)
{
	struct shims *shims = context;
	int begins;

	(void)ret_error;
	if (sd_bus_message_read(signal, "b", &begins) < 0 || begins)
		return 0;
	if (shims->reload) {
		shims->reloads_seen++;
		return 0;
	}
	begin_anew(shims);
	look_at_all(shims);
	return 0;
}

static void lose_bus(struct shims *shims, const char *problem)
{
	shims->reload = sd_bus_slot_unref(shims->reload);
	shims->reloading = sd_bus_slot_unref(shims->reloading);
	shims->reload_again = false;
	shims->bus = NULL;
	for (size_t i = 0; i < shims->list.count; i++)
		shims->list.items[i]->call = sd_bus_slot_unref(shims->list.items[i]->call);
	finish_leaving(shims);
	for (size_t i = shims->list.count; i-- > 0;) {
		if (i < shims->list.count)
			tell(shims->list.items[i], NULL, problem);
	}
}

void shims_use_bus(struct shims *shims, sd_bus *bus, const char *problem)
{
	int r;

	if (!bus) {
		lose_bus(shims, problem);
		return;
	}
	shims->bus = bus;
	r = sd_bus_match_signal_async(bus, &shims->reloading, SYSTEMD, SYSTEMD_PATH, MANAGER, "Reloading", on_reloading, NULL,
				      shims);
	if (r < 0)
		log_warning("changes of units are not seen: %s", strerror(-r));
	look_at_all(shims);
}

static struct shim *shim_new(struct shims *shims, const char *unit)
{
	struct shim *shim = vec_reserve(&shims->list, 1) < 0 ? NULL : calloc(1, sizeof(*shim));
	struct shim **slot;

	if (!shim)
		return NULL;
	shim->shims = shims;
	shim->unit = strdup(unit);
	shim->path = shim_file_path(unit);
	if (!shim->unit || !shim->path) {
		shim_free(shim);
		return NULL;
	}
	slot = vec_push(&shims->list);
	*slot = shim;
	return shim;
}

int shims_put(struct shims *shims, const char *unit, shims_done_fn done, void *context)
{
	struct shim *shim = find(shims, unit);
	int r;

	if (!shim)
		shim = shim_new(shims, unit);
	if (!shim)
		return -ENOMEM;
	if (shim->done && !shim->leaving)
		return -EBUSY;
	/* Whoever waits for its being taken out need not wait longer: another drop-in replaces that one. */
	tell(shim, NULL, NULL);
	shim->leaving = shim->gave_up = false;
	shim->tries = 0;
	/* Not now: who asks is not ready to be told yet. */
	r = sd_event_source_set_enabled(shims->soon, SD_EVENT_ONESHOT);
	if (r < 0)
		return r;
	shim->done = done;
	shim->done_context = context;
	return 0;
}

void shims_take_out(struct shims *shims, const char *unit, shims_done_fn done, void *context)
{
	struct shim *shim = find(shims, unit);

	if (shim)
		tell(shim, NULL, "it was taken back");
	/* Who has just been told may have taken it out. */
	shim = find(shims, unit);
	if (!shim) {
		if (done)
			done(context, NULL, NULL);
		return;
	}
	forget_folders(shim);
	forget_drop_in(shim);
	shim->leaving = true;
	shim->done = done;
	shim->done_context = context;
	if (shim->loaded)
		reload(shims);
	if (!shim->loaded || !shims->reload)
		leave(shim);
}

const char *shims_path(const struct shims *shims, const char *unit)
{
	const struct shim *shim = find(shims, unit);

	return shim && shim->in_force && !shim->leaving ? shim->path : NULL;
}

int shims_new(sd_event *event, struct shims **ret)
{
	struct shims *shims = calloc(1, sizeof(*shims));
	int r;

	if (!shims)
		return -ENOMEM;
	shims->event = event;
	r = sd_event_add_defer(event, &shims->soon, on_soon, shims);
	if (r >= 0)
		r = sd_event_source_set_enabled(shims->soon, SD_EVENT_OFF);
	if (r < 0) {
		shims_free(shims);
		return r;
	}
	*ret = shims;
	return 0;
}

void shims_free(struct shims *shims)
{
	if (!shims)
		return;
	sd_bus_slot_unref(shims->reload);
	sd_bus_slot_unref(shims->reloading);
	sd_event_source_disable_unref(shims->soon);
	while (shims->list.count > 0)
		shim_free(shims->list.items[--shims->list.count]);
	vec_fini(&shims->list);
	free(shims);
}
