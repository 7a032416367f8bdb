#include "daemon/programs.h"

#include "base/proc.h"
#include "base/vec.h"
#include "daemon/log.h"
#include "daemon/process.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct programs {
	struct programs_owner owner;
	sd_event_source *timer;
	bool told;                     /* that /proc cannot be read */
	VEC_OF(char *) list;
};

/* The owner may change the list meanwhile. */
static void look_at(const struct programs *programs, int pid)
{
	char path[PATH_MAX];

	process_program(pid, path);
	for (size_t i = 0; *path && i < programs->list.count; i++) {
		if (strcmp(programs->list.items[i], path) == 0) {
			programs->owner.found(programs->owner.context, path, pid);
			return;
		}
	}
}

static void look(struct programs *programs)
{
	DIR *proc = opendir("/proc");
	int r = proc ? 0 : -errno;
	pid_t pid;

	while (proc && (r = proc_next(proc, &pid)) > 0)
		look_at(programs, pid);
	if (r < 0 && !programs->told)
		log_warning("programs are not found: /proc cannot be read: %s", strerror(-r));
	programs->told = r < 0;
	if (proc)
		closedir(proc);
}

static int on_time(sd_event_source *source, uint64_t usec, void *context)
{
	struct programs *programs = context;

	(void)usec;
	if (programs->list.count == 0)
		return 0;
	look(programs);
	sd_event_source_set_time_relative(source, PROGRAMS_LOOK_US);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int programs_new(sd_event *event, const struct programs_owner *owner, struct programs **ret)
{
	struct programs *programs = calloc(1, sizeof(*programs));
	int r;

	if (!programs)
		return -ENOMEM;
	programs->owner = *owner;
	r = sd_event_add_time_relative(event, &programs->timer, CLOCK_MONOTONIC, 0, 0, on_time, programs);
	if (r < 0) {
		free(programs);
		return r;
	}
	*ret = programs;
	return 0;
}

void programs_free(struct programs *programs)
{
	if (!programs)
		return;
	sd_event_source_disable_unref(programs->timer);
	while (programs->list.count > 0)
		free(programs->list.items[--programs->list.count]);
	vec_fini(&programs->list);
	free(programs);
}

int programs_follow(struct programs *programs, const char *program)
{
	char *copy = strdup(program), **slot = copy ? vec_push(&programs->list) : NULL;

	if (!slot) {
		free(copy);
		return -ENOMEM;
	}
	*slot = copy;
	sd_event_source_set_time_relative(programs->timer, 0);
	return sd_event_source_set_enabled(programs->timer, SD_EVENT_ONESHOT);
}

void programs_leave(struct programs *programs, const char *program)
{
	for (size_t i = 0; i < programs->list.count; i++) {
		if (strcmp(programs->list.items[i], program) != 0)
			continue;
		free(programs->list.items[i]);
		vec_remove_unordered(&programs->list, i);
		return;
	}
}
