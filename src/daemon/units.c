#include "daemon/units.h"

#include "base/vec.h"
#include "daemon/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#define SYSTEMD "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define PROPERTIES "org.freedesktop.DBus.Properties"
#define LOCAL_PATH "/org/freedesktop/DBus/Local"
#define LOCAL "org.freedesktop.DBus.Local"

struct unit {
	struct units *units;
	char *name, *path;             /* path: of systemd's object; NULL: not known yet */
	sd_bus_slot *call, *changes;   /* the question under way; the signals */
	sd_event_source *again;        /* a question has failed: all is asked anew then */
	bool asks_again;               /* it changed while it was asked about */
	bool looked_up;
};

struct units {
	sd_event *event;
	struct units_owner owner;
	sd_bus *bus;                   /* NULL: not there */
	sd_bus_slot *end, *subscription;
	sd_event_source *again;
	bool ready;                    /* systemd has answered */
	bool told;                     /* that it is not there */
	VEC_OF(struct unit *) list;
};

static void connect_bus(struct units *units);
static void ask_main_pid(struct unit *unit);
static void look_up(struct unit *unit);

/* --- one --- */

static void forget_object(struct unit *unit)
{
	unit->call = sd_bus_slot_unref(unit->call);
	unit->changes = sd_bus_slot_unref(unit->changes);
	unit->again = sd_event_source_disable_unref(unit->again);
	free(unit->path);
	unit->path = NULL;
	unit->asks_again = false;
}

static void unit_free(struct unit *unit)
{
	if (!unit)
		return;
	forget_object(unit);
	free(unit->name);
	free(unit);
}

static void look_up_done(struct unit *unit, const char *problem)
{
	const struct units_owner *owner = &unit->units->owner;

	if (unit->looked_up)
		return;
	unit->looked_up = true;
	owner->looked_up(owner->context, unit->name, problem);
}

static const char *error_text(sd_bus_message *reply)
{
	const sd_bus_error *error = sd_bus_message_get_error(reply);

	return error && error->message ? error->message : "systemd does not answer";
}

static int on_unit_again(sd_event_source *source, uint64_t usec, void *context)
{
	struct unit *unit = context;

	(void)source;
	(void)usec;
	forget_object(unit);
	look_up(unit);
	return 0;
}

static void ask_again_later(struct unit *unit)
{
	struct units *units = unit->units;

	if (!unit->again)
		sd_event_add_time_relative(units->event, &unit->again, CLOCK_MONOTONIC, UNITS_AGAIN_US, 0, on_unit_again, unit);
}

/* systemd may have too much to do for an answer.  What it calls invalid stays so. */
static void question_failed(struct unit *unit, sd_bus_message *reply)
{
	if (!sd_bus_error_has_name(sd_bus_message_get_error(reply), SD_BUS_ERROR_INVALID_ARGS))
		ask_again_later(unit);
	look_up_done(unit, error_text(reply));
}

static void question_not_sent(struct unit *unit, int error)
{
	ask_again_later(unit);
	look_up_done(unit, strerror(-error));
}

/* The owner may leave the unit in these calls, so nothing follows them. */
static int on_main_pid(sd_bus_message *reply, void *context, sd_bus_error *ret_error)
{
	struct unit *unit = context;
	const struct units_owner *owner = &unit->units->owner;
	uint32_t pid = 0;

	(void)ret_error;
	unit->call = sd_bus_slot_unref(unit->call);
	if (sd_bus_message_is_method_error(reply, NULL) || sd_bus_message_read(reply, "v", "u", &pid) < 0) {
		question_failed(unit, reply);
		return 0;
	}
	if (unit->asks_again)
		ask_main_pid(unit);
	owner->main_pid(owner->context, unit->name, (int)pid);
	return 0;
}

static void ask_main_pid(struct unit *unit)
{
	int r;

	unit->asks_again = unit->call != NULL;
	if (unit->call)
		return;
	r = sd_bus_call_method_async(unit->units->bus, &unit->call, SYSTEMD, unit->path, PROPERTIES, "Get", on_main_pid,
				     unit, "ss", SYSTEMD ".Service", "MainPID");
	if (r < 0) {
		log_warning("systemd cannot be asked about %s: %s", unit->name, strerror(-r));
		ask_again_later(unit);
	}
}

static int on_changed(sd_bus_message *signal, void *context, sd_bus_error *ret_error)
{
	(void)signal;
	(void)ret_error;
	ask_main_pid(context);
	return 0;
}

static int on_load_state(sd_bus_message *reply, void *context, sd_bus_error *ret_error)
{
	struct unit *unit = context;
	const char *state = "";
	char problem[128];

	(void)ret_error;
	unit->call = sd_bus_slot_unref(unit->call);
	if (sd_bus_message_is_method_error(reply, NULL) || sd_bus_message_read(reply, "v", "s", &state) < 0) {
		question_failed(unit, reply);
		return 0;
	}
	ask_main_pid(unit);
	snprintf(problem, sizeof(problem), "systemd says that it is %s", strcmp(state, "not-found") == 0 ? "not found" : state);
	look_up_done(unit, strcmp(state, "loaded") == 0 ? NULL : problem);
	return 0;
}

static int on_object(sd_bus_message *reply, void *context, sd_bus_error *ret_error)
{
	struct unit *unit = context;
	sd_bus *bus = unit->units->bus;
	const char *path;
	int r;

	(void)ret_error;
	unit->call = sd_bus_slot_unref(unit->call);
	if (sd_bus_message_is_method_error(reply, NULL) || sd_bus_message_read(reply, "o", &path) < 0) {
		question_failed(unit, reply);
		return 0;
	}
	unit->path = strdup(path);
	r = unit->path ? sd_bus_match_signal_async(bus, &unit->changes, SYSTEMD, unit->path, PROPERTIES,
						   "PropertiesChanged", on_changed, NULL, unit) : -ENOMEM;
	if (r >= 0)
		r = sd_bus_call_method_async(bus, &unit->call, SYSTEMD, unit->path, PROPERTIES, "Get", on_load_state, unit,
					     "ss", SYSTEMD ".Unit", "LoadState");
	if (r < 0)
		question_not_sent(unit, r);
	return 0;
}

static void look_up(struct unit *unit)
{
	int r = sd_bus_call_method_async(unit->units->bus, &unit->call, SYSTEMD, SYSTEMD_PATH, SYSTEMD ".Manager", "LoadUnit",
					 on_object, unit, "s", unit->name);

	if (r < 0)
		question_not_sent(unit, r);
}

/* --- the bus --- */

static int on_again(sd_event_source *source, uint64_t usec, void *context)
{
	struct units *units = context;

	(void)source;
	(void)usec;
	units->again = sd_event_source_disable_unref(units->again);
	if (!units->bus && units->list.count > 0)
		connect_bus(units);
	return 0;
}

static void close_bus(struct units *units)
{
	for (size_t i = 0; i < units->list.count; i++)
		forget_object(units->list.items[i]);
	units->end = sd_bus_slot_unref(units->end);
	units->subscription = sd_bus_slot_unref(units->subscription);
	if (units->bus)
		sd_bus_detach_event(units->bus);
	units->bus = sd_bus_close_unref(units->bus);
	units->ready = false;
}

static void try_again_later(struct units *units, const char *why)
{
	char problem[192];

	if (!units->told)
		log_warning("the system bus cannot be used, services are not followed for now: %s", why);
	units->told = true;
	snprintf(problem, sizeof(problem), "the system bus cannot be used now: %s", why);
	/* Its slots go before it does. */
	units->owner.bus(units->owner.context, NULL, problem);
	close_bus(units);
	if (!units->again)
		sd_event_add_time_relative(units->event, &units->again, CLOCK_MONOTONIC, UNITS_AGAIN_US, 0, on_again, units);
	for (size_t i = units->list.count; i-- > 0;) {
		if (i < units->list.count)
			look_up_done(units->list.items[i], problem);
	}
}

static int on_end(sd_bus_message *signal, void *context, sd_bus_error *ret_error)
{
	(void)signal;
	(void)ret_error;
	try_again_later(context, "it has closed the connection");
	return 0;
}

/* Without a subscription systemd sends no signals.  That it comes to an answer is also the sign of a bus that works. */
static int on_subscribed(sd_bus_message *reply, void *context, sd_bus_error *ret_error)
{
	struct units *units = context;
	const sd_bus_error *error = sd_bus_message_get_error(reply);

	(void)ret_error;
	if (error && !sd_bus_error_has_name(error, SYSTEMD ".AlreadySubscribed")) {
		try_again_later(units, error_text(reply));
		return 0;
	}
	if (units->told)
		log_info("the system bus can be used, services are followed");
	units->told = false;
	units->ready = true;
	for (size_t i = units->list.count; i-- > 0;)
		look_up(units->list.items[i]);
	units->owner.bus(units->owner.context, units->bus, NULL);
	return 0;
}

static void connect_bus(struct units *units)
{
	int r = sd_bus_open_system(&units->bus);

	if (r >= 0)
		r = sd_bus_attach_event(units->bus, units->event, SD_EVENT_PRIORITY_NORMAL);
	if (r >= 0)
		r = sd_bus_match_signal_async(units->bus, &units->end, NULL, LOCAL_PATH, LOCAL, "Disconnected", on_end, NULL, units);
	if (r >= 0)
		r = sd_bus_call_method_async(units->bus, &units->subscription, SYSTEMD, SYSTEMD_PATH, SYSTEMD ".Manager",
					     "Subscribe", on_subscribed, units, NULL);
	if (r < 0)
		try_again_later(units, strerror(-r));
}

/* --- all of them --- */

int units_new(sd_event *event, const struct units_owner *owner, struct units **ret)
{
	struct units *units = calloc(1, sizeof(*units));

	if (!units)
		return -ENOMEM;
	units->event = event;
	units->owner = *owner;
	*ret = units;
	return 0;
}

void units_free(struct units *units)
{
	if (!units)
		return;
	close_bus(units);
	sd_event_source_disable_unref(units->again);
	while (units->list.count > 0)
		unit_free(units->list.items[--units->list.count]);
	vec_fini(&units->list);
	free(units);
}

int units_follow(struct units *units, const char *name)
{
	struct unit *unit = vec_reserve(&units->list, 1) < 0 ? NULL : calloc(1, sizeof(*unit));
	struct unit **slot;

	if (unit)
		unit->name = strdup(name);
	if (!unit || !unit->name) {
		unit_free(unit);
		return -ENOMEM;
	}
	unit->units = units;
	slot = vec_push(&units->list);
	*slot = unit;
	if (units->ready)
		look_up(unit);
	else if (!units->bus && units->again)
		look_up_done(unit, "the system bus cannot be used now");
	else if (!units->bus)
		connect_bus(units);
	return 0;
}

void units_connect(struct units *units)
{
	if (!units->bus)
		connect_bus(units);
}

void units_leave(struct units *units, const char *name)
{
	for (size_t i = 0; i < units->list.count; i++) {
		if (strcmp(units->list.items[i]->name, name) != 0)
			continue;
		unit_free(units->list.items[i]);
		vec_remove_unordered(&units->list, i);
		return;
	}
}

