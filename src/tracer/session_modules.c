/* The objects that a process maps: told to the daemon, and made known to unwinder, engine and guard. */
#include "tracer/session.h"

#include "tracer/guard.h"

#include "target/resident.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void send_module(struct session *session, const struct module *module)
{
	struct wire_module message = { .head = { WIRE_MODULE, 0, session->target->pid, sizeof(message) },
				       .module = module->id, .build_id_len = module->build_id_len };
	int fd = target_module_fd(session->target, module->id);

	memcpy(message.build_id, module->build_id, module->build_id_len);
	snprintf(message.path, sizeof(message.path), "%s", module->path);
	link_send(session->link, &message, sizeof(message), fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

static int add_module(struct session *session, const struct module *module)
{
	int fd = target_module_fd(session->target, module->id);

	if (fd < 0)
		return 0;
	unwinder_add_module(session->unwinder, module->id, fd);
	if (module->piece)
		return 0;
	guard_note_module(session, module->id);
	/* the vdso allocates nothing */
	return module->inode != 0 ? engine_plan_module(session->engine, module->id, fd) : 0;
}

static int add_those_back(struct session *session)
{
	struct module_map *map = &session->target->modules;
	int r = 0;

	for (uint32_t id = 0; r == 0 && id < session->modules_known; id++) {
		if (!map->modules.items[id].back)
			continue;
		map->modules.items[id].back = false;
		send_module(session, &map->modules.items[id]);      /* a daemon may have come meanwhile */
		r = add_module(session, &map->modules.items[id]);
	}
	return r;
}

const char *session_missed(const struct session *session, char *text, size_t space)
{
	const struct mapped_files *files = &session->target->files;

	if (files->missed == 0)
		return NULL;
	snprintf(text, space, "no file for %.100s: %s; it has no names, and no allocator of its own is seen",
		 files->missed_path, files->missed_why);
	return text;
}

static void tell_missed(struct session *session)
{
	uint64_t missed = session->target->files.missed;
	char text[WIRE_TEXT_MAX];

	if (missed == session->missed_told)
		return;
	session_fail(session->link, 0, session->target->pid, FAILURE_UNSUPPORTED, 0, "%s (%" PRIu64 " such files)",
		     session_missed(session, text, sizeof(text)), missed);
	session->missed_told = missed;
	session->modules_failed = true;
}

int session_add_modules(struct session *session)
{
	struct module_map *map = &session->target->modules;
	int r = add_those_back(session);

	for (; r == 0 && session->modules_known < map->modules.count; session->modules_known++) {
		const struct module *module = &map->modules.items[session->modules_known];

		send_module(session, module);
		r = add_module(session, module);
	}
	tell_missed(session);
	return r;
}

void session_tell_modules(struct session *session)
{
	for (uint32_t i = 0; i < session->modules_known; i++)
		send_module(session, &session->target->modules.modules.items[i]);
}

static void drop_unmapped(struct session *session)
{
	struct target *target = session->target;

	for (uint32_t id = 0; id < session->modules_known; id++) {
		struct module *module = &target->modules.modules.items[id];

		/* One that comes back in the look that found it gone gets another id. */
		if (module->mapped || module->left)
			continue;
		engine_drop_module(session->engine, id);
		guard_drop_module(session, id);
		unwinder_remove_module(session->unwinder, id);
		resident_drop_module(target, id);
		module->left = true;
	}
}

/* Once for each: the answers are not exact from then on, and this is why. */
void session_tell_refusal(struct session *session)
{
	const char *refusal = engine_refusal(session->engine);

	if (!refusal || strcmp(refusal, session->refusal_told) == 0)
		return;
	snprintf(session->refusal_told, sizeof(session->refusal_told), "%s", refusal);
	session_fail(session->link, 0, session->target->pid, FAILURE_UNSUPPORTED, 0,
		     "%s; what it allocates there is not seen", refusal);
}

int session_look_at_objects(struct session *session)
{
	bool changed = false;
	int r = target_scan_modules(session->target, &changed);
	unsigned planned;

	if (r < 0 || !changed)
		return r;
	drop_unmapped(session);
	planned = engine_planned(session->engine);
	r = session_add_modules(session);
	return r < 0 ? r : engine_planned(session->engine) > planned;
}

void session_objects_changed(struct session *session)
{
	bool changed = false;
	int r;

	session->maps_change = true;
	r = target_scan_modules(session->target, &changed);

	if (r == 0 && changed) {
		drop_unmapped(session);
		r = session_add_modules(session);
	}
	if (r == 0 && engine_wants_all_held(session->engine))
		target_stop_all(session->target);
	if (r == 0)
		r = engine_install(session->engine);
	if (r >= 0)
		r = guard_plant(session);
	if (r < 0 && r != -ESRCH)
		session->modules_failed = true;
	session->maps_change = false;
	session_tell_refusal(session);
}
