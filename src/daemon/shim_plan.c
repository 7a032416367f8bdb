#include "daemon/shim_plan.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/units.h"
#include "daemon/shim_file.h"
#include "shim/shim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where systemd looks for a command without a slash. */
static const char *const command_folders[] = {
	"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
};
/* The service must come before its own deadlines, whatever the shim waits. */
#define DEADLINE_MIN_US (2ULL * SHIM_WAIT_MS * 1000)
#define WATCHDOG_KEY "WatchdogSec"
#define UNIT_FILE_BYTES_MAX (1u << 20)

static void refuse(struct shim_plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The first reason is the one that is told. */
static void refuse(struct shim_plan *plan, const char *format, ...)
{
	va_list args;

	if (*plan->refusal)
		return;
	va_start(args, format);
	vsnprintf(plan->refusal, sizeof(plan->refusal), format, args);
	va_end(args);
}

static bool is_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	while (len > 0 && folder[len - 1] == '/')
		len--;
	return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* --- commands --- */

static int take_flags(struct shim_plan *plan, char **words, unsigned *ret_flags)
{
	for (; words && *words; words++) {
		unsigned flag;

		if (exec_flag_parse(*words, &flag) < 0)
			refuse(plan, "one of its ExecStart= has a prefix (%s) that this version does not know", *words);
		else
			*ret_flags |= flag;
	}
	return 0;
}

static void strv_free(char **list)
{
	for (char **item = list; item && *item; item++)
		free(*item);
	free(list);
}

/* One of "sasasttttuii": path, argv, flags, and when and how it ran last. */
static int read_command(sd_bus_message *m, struct shim_plan *plan)
{
	struct exec_command *command = vec_push(&plan->start.commands);
	char **words = NULL;
	const char *path;
	int r;

	if (!command)
		return -ENOMEM;
	r = sd_bus_message_read(m, "s", &path);
	if (r >= 0 && !(command->path = strdup(path)))
		r = -ENOMEM;
	if (r >= 0)
		r = sd_bus_message_read_strv(m, &command->argv);
	if (r >= 0)
		r = sd_bus_message_read_strv(m, &words);
	if (r >= 0)
		r = take_flags(plan, words, &command->flags);
	if (r >= 0)
		r = sd_bus_message_skip(m, "ttttuii");
	strv_free(words);
	return r;
}

static int read_commands(sd_bus_message *m, struct shim_plan *plan)
{
	int r = sd_bus_message_enter_container(m, 'a', "(sasasttttuii)");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "sasasttttuii")) > 0) {
		r = plan->start.commands.count < EXEC_COMMANDS_MAX ? read_command(m, plan) : -E2BIG;
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* --- what the sandbox hides or forbids --- */

/* A time that passes while the shim waits. */
static int read_deadline(sd_bus_message *m, struct shim_plan *plan, const char *setting)
{
	uint64_t usec;
	int r = sd_bus_message_read(m, "t", &usec);

	if (r >= 0 && usec < DEADLINE_MIN_US)
		refuse(plan, "its %s= is %" PRIu64 " ms, and the shim may wait %d ms for its tracer", setting, usec / 1000,
		       SHIM_WAIT_MS);
	return r;
}

static int read_start_timeout(sd_bus_message *m, struct shim_plan *plan)
{
	return read_deadline(m, plan, "TimeoutStartSec");
}

static int read_job_timeout(sd_bus_message *m, struct shim_plan *plan)
{
	return read_deadline(m, plan, "JobTimeoutSec");
}

static int read_running_timeout(sd_bus_message *m, struct shim_plan *plan)
{
	return read_deadline(m, plan, "JobRunningTimeoutSec");
}

static int read_runtime(sd_bus_message *m, struct shim_plan *plan)
{
	return read_deadline(m, plan, "RuntimeMaxSec");
}

static int read_type(sd_bus_message *m, struct shim_plan *plan)
{
	const char *type;
	int r = sd_bus_message_read(m, "s", &type);

	if (r < 0)
		return r;
	if (strcmp(type, "forking") == 0)
		refuse(plan, "it is of Type=forking: its main process is a copy of the one that systemd starts");
	plan->is_up_at_once = strcmp(type, "simple") == 0 || strcmp(type, "exec") == 0 || strcmp(type, "idle") == 0;
	return r;
}

static int read_load_state(sd_bus_message *m, struct shim_plan *plan)
{
	const char *state;
	int r = sd_bus_message_read(m, "s", &state);

	if (r >= 0 && strcmp(state, "loaded") != 0)
		refuse(plan, "systemd says that it is %s", strcmp(state, "not-found") == 0 ? "not found" : state);
	return r;
}

static int read_root(sd_bus_message *m, struct shim_plan *plan)
{
	const char *path;
	int r = sd_bus_message_read(m, "s", &path);

	if (r >= 0 && *path && strcmp(path, "/") != 0)
		refuse(plan, "it has a root of its own (%s), in which %s is not visible", path, SHIM_PATH);
	return r;
}

static int read_private_pids(sd_bus_message *m, struct shim_plan *plan)
{
	const char *value;
	int r = sd_bus_message_read(m, "s", &value);

	if (r >= 0 && strcmp(value, "no") != 0)
		refuse(plan, "it has PrivatePIDs=, so the shim does not see its tracer");
	return r;
}

/* "(bs)": to be ignored when it fails, and the name. */
static int read_label(sd_bus_message *m, struct shim_plan *plan)
{
	const char *label;
	int ignore, r = sd_bus_message_read(m, "(bs)", &ignore, &label);

	if (r >= 0 && *label)
		refuse(plan, "it is given a security label (%s) for its own program, which might not execute another", label);
	return r;
}

static int read_hidden(sd_bus_message *m, struct shim_plan *plan)
{
	char **list = NULL;
	int r = sd_bus_message_read_strv(m, &list);

	for (char **item = list; r >= 0 && item && *item; item++) {
		const char *path = *item + strspn(*item, "-+");

		if (is_below(SHIM_PATH, path))
			refuse(plan, "its InaccessiblePaths=%s hides %s", path, SHIM_PATH);
	}
	strv_free(list);
	return r;
}

static int read_no_exec(sd_bus_message *m, struct shim_plan *plan)
{
	char **list = NULL;
	int r = sd_bus_message_read_strv(m, &list);

	plan->allow_shim = r >= 0 && list && *list;
	strv_free(list);
	return r;
}

/* TemporaryFileSystem=, "a(ss)": where, and options. */
static int read_temporary(sd_bus_message *m, struct shim_plan *plan)
{
	const char *path, *options;
	int r = sd_bus_message_enter_container(m, 'a', "(ss)");

	while (r >= 0 && (r = sd_bus_message_read(m, "(ss)", &path, &options)) > 0) {
		if (is_below(SHIM_PATH, path))
			refuse(plan, "its TemporaryFileSystem=%s hides %s", path, SHIM_PATH);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* BindPaths=, "a(ssbt)": from, to, to be ignored when it is missing, flags. */
static int read_binds(sd_bus_message *m, struct shim_plan *plan)
{
	const char *source, *path;
	uint64_t flags;
	int ignore, r = sd_bus_message_enter_container(m, 'a', "(ssbt)");

	while (r >= 0 && (r = sd_bus_message_read(m, "(ssbt)", &source, &path, &ignore, &flags)) > 0) {
		if (is_below(SHIM_PATH, path) && strcmp(source, path) != 0)
			refuse(plan, "its bind mount at %s hides %s", path, SHIM_PATH);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* MountImages=, "a(ssba(ss))". */
static int read_mounts(sd_bus_message *m, struct shim_plan *plan)
{
	const char *source, *path;
	int ignore, r = sd_bus_message_enter_container(m, 'a', "(ssba(ss))");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "ssba(ss)")) > 0) {
		r = sd_bus_message_read(m, "ssb", &source, &path, &ignore);
		if (r >= 0 && is_below(SHIM_PATH, path))
			refuse(plan, "its MountImages=%s hides %s", path, SHIM_PATH);
		if (r >= 0)
			r = sd_bus_message_skip(m, "a(ss)");
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_needs_reload(sd_bus_message *m, struct shim_plan *plan)
{
	int needs, r = sd_bus_message_read(m, "b", &needs);

	plan->needs_reload = r >= 0 && needs;
	return r;
}

static int read_search_path(sd_bus_message *m, struct shim_plan *plan)
{
	char **list = NULL;
	int r = sd_bus_message_read_strv(m, &list);

	plan->searches = r >= 0 && list && *list;
	strv_free(list);
	return r;
}

/* None: all may be.  systemd says which one "native" is. */
static int read_architectures(sd_bus_message *m, struct shim_plan *plan)
{
	char **list = NULL;
	int r = sd_bus_message_read_strv(m, &list);
	bool has = r < 0 || !list || !*list;

	for (char **item = list; item && *item; item++)
		has |= strcmp(*item, SHIM_ARCHITECTURE) == 0 || strcmp(*item, "native") == 0;
	if (!has)
		refuse(plan, "its SystemCallArchitectures= kills a program for " SHIM_ARCHITECTURE ", which the shim is");
	strv_free(list);
	return r;
}

static bool is_listed(char **list, const char *call)
{
	size_t len = strlen(call);

	for (; list && *list; list++) {
		/* "NAME", or "NAME:ERRNO". */
		if (strncmp(*list, call, len) == 0 && ((*list)[len] == '\0' || (*list)[len] == ':'))
			return true;
	}
	return false;
}

/* "(bas)": what is listed is allowed, or it is not; no list: no filter. */
static int read_filter(sd_bus_message *m, struct shim_plan *plan)
{
	static const char *const calls[] = { SHIM_SYSCALLS };
	char **list = NULL;
	int allows = 0, r = sd_bus_message_enter_container(m, 'r', "bas");

	if (r >= 0)
		r = sd_bus_message_read(m, "b", &allows);
	if (r >= 0)
		r = sd_bus_message_read_strv(m, &list);
	for (size_t i = 0; r >= 0 && list && *list && i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (is_listed(list, calls[i]) != (allows != 0))
			refuse(plan, "its SystemCallFilter= does not let the shim call %s", calls[i]);
	}
	strv_free(list);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* --- files --- */

static int add_file(struct shim_plan *plan, const char *path)
{
	size_t count = 0;
	char **list;

	if (!*path)
		return 0;
	while (plan->files && plan->files[count])
		count++;
	if (count >= SHIM_FILES_MAX)
		return -E2BIG;
	list = realloc(plan->files, (count + 2) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	plan->files = list;
	list[count + 1] = NULL;
	list[count] = strdup(path);
	return list[count] ? 0 : -ENOMEM;
}

static int read_fragment(sd_bus_message *m, struct shim_plan *plan)
{
	const char *path;
	int r = sd_bus_message_read(m, "s", &path);

	return r < 0 ? r : add_file(plan, path);
}

static int read_drop_ins(sd_bus_message *m, struct shim_plan *plan)
{
	char **list = NULL;
	int r = sd_bus_message_read_strv(m, &list);

	for (char **item = list; r >= 0 && item && *item; item++)
		r = add_file(plan, *item);
	strv_free(list);
	return r;
}

/* WATCHDOG_KEY of a file as the last one says it, in *usec. */
static void read_watchdog_of(const char *path, uint64_t *usec)
{
	char *text, *rest = NULL;

	if (file_read_text(path, UNIT_FILE_BYTES_MAX, &text, NULL) < 0)
		return;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *value = line + strspn(line, " \t");
		uint64_t ns;

		if (strncmp(value, WATCHDOG_KEY, strlen(WATCHDOG_KEY)) != 0)
			continue;
		value += strlen(WATCHDOG_KEY);
		value += strspn(value, " \t=");
		*usec = units_parse_duration(value, &ns) < 0 ? 0 : ns / NSEC_PER_USEC;
	}
	free(text);
}

/* The watchdog of a service that says when it is ready begins then.  systemd's property is of the one that runs. */
static void check_watchdog(struct shim_plan *plan)
{
	uint64_t usec = 0;

	for (char **file = plan->files; plan->is_up_at_once && file && *file; file++)
		read_watchdog_of(*file, &usec);
	if (usec > 0 && usec < DEADLINE_MIN_US)
		refuse(plan, "its WatchdogSec= is %" PRIu64 " ms from its start on, and the shim may wait %d ms for its tracer",
		       usec / 1000, SHIM_WAIT_MS);
}

/* --- the whole --- */

static const struct property {
	const char *name, *type;
	int (*read)(sd_bus_message *m, struct shim_plan *plan);
} properties[] = {
	{ "ExecStartEx", "a(sasasttttuii)", read_commands },
	{ "LoadState", "s", read_load_state },
	{ "Type", "s", read_type },
	{ "TimeoutStartUSec", "t", read_start_timeout },
	{ "JobTimeoutUSec", "t", read_job_timeout },
	{ "JobRunningTimeoutUSec", "t", read_running_timeout },
	{ "RuntimeMaxUSec", "t", read_runtime },
	{ "RootDirectory", "s", read_root },
	{ "RootImage", "s", read_root },
	{ "PrivatePIDs", "s", read_private_pids },
	{ "SELinuxContext", "(bs)", read_label },
	{ "AppArmorProfile", "(bs)", read_label },
	{ "SmackProcessLabel", "(bs)", read_label },
	{ "InaccessiblePaths", "as", read_hidden },
	{ "NoExecPaths", "as", read_no_exec },
	{ "ExecSearchPath", "as", read_search_path },
	{ "TemporaryFileSystem", "a(ss)", read_temporary },
	{ "BindPaths", "a(ssbt)", read_binds },
	{ "BindReadOnlyPaths", "a(ssbt)", read_binds },
	{ "MountImages", "a(ssba(ss))", read_mounts },
	{ "SystemCallFilter", "(bas)", read_filter },
	{ "SystemCallArchitectures", "as", read_architectures },
	{ "NeedDaemonReload", "b", read_needs_reload },
	{ "FragmentPath", "s", read_fragment },
	{ "DropInPaths", "as", read_drop_ins },
};

static const struct property *find_property(const char *name)
{
	for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++) {
		if (strcmp(properties[i].name, name) == 0)
			return &properties[i];
	}
	return NULL;
}

static int read_property(sd_bus_message *m, struct shim_plan *plan)
{
	const struct property *property;
	const char *name;
	int r = sd_bus_message_read(m, "s", &name);

	if (r < 0)
		return r;
	property = find_property(name);
	if (!property)
		return sd_bus_message_skip(m, "v");
	r = sd_bus_message_enter_container(m, 'v', property->type);
	if (r >= 0)
		r = property->read(m, plan);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* The shim looks for nothing: it has the path or has none. */
static int find_command(const struct shim_plan *plan, struct exec_command *command)
{
	char path[256];

	if (strchr(command->path, '/'))
		return 0;
	if (plan->searches)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(command_folders) / sizeof(command_folders[0]); i++) {
		int len = snprintf(path, sizeof(path), "%s/%s", command_folders[i], command->path);

		if (len < (int)sizeof(path) && access(path, X_OK) == 0) {
			free(command->path);
			command->path = strdup(path);
			return command->path ? 0 : -ENOMEM;
		}
	}
	return -ENOENT;
}

static int check_commands(struct shim_plan *plan)
{
	if (plan->start.commands.count == 0)
		refuse(plan, "it has no ExecStart=");
	for (size_t i = 0; i < plan->start.commands.count; i++) {
		struct exec_command *command = &plan->start.commands.items[i];
		int r = command->argv && command->argv[0] ? find_command(plan, command) : -EBADMSG;

		if (r == -ENOENT)
			refuse(plan, "its command %s has no path%s", command->path,
			       plan->searches ? ", and ExecSearchPath= is set" : " and is found nowhere");
		else if (r < 0)
			return r;
	}
	return 0;
}

void shim_plan_fini(struct shim_plan *plan)
{
	exec_start_fini(&plan->start);
	strv_free(plan->files);
	plan->files = NULL;
}

int shim_plan_read(sd_bus_message *reply, const char *shim, struct shim_plan *ret)
{
	struct shim_plan plan = { .refusal = "" };
	const char *obstacle = shim_file_obstacle(shim);
	int r = sd_bus_message_enter_container(reply, 'a', "{sv}");

	if (obstacle)
		refuse(&plan, "%s %s", shim, obstacle);
	/* The domain of a service is found by the file that systemd executes. */
	if (access("/sys/fs/selinux/enforce", F_OK) == 0)
		refuse(&plan, "SELinux is on, and with the shim before it its program would run in another domain");
	while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
		r = read_property(reply, &plan);
		if (r >= 0)
			r = sd_bus_message_exit_container(reply);
	}
	check_watchdog(&plan);
	if (r >= 0 && !exec_start_has_shim(&plan.start, shim))
		r = check_commands(&plan);
	if (r < 0) {
		shim_plan_fini(&plan);
		return r == -ENOMEM || r == -E2BIG ? r : -EBADMSG;
	}
	*ret = plan;
	return 0;
}
