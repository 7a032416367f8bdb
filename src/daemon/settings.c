#define _GNU_SOURCE              /* asprintf */
#include "daemon/settings.h"

#include "base/clock.h"
#include "base/reason.h"
#include "base/units.h"
#include "daemon/debuginfo.h"
#include "daemon/log.h"
#include "daemon/metrics_address.h"
#include "daemon/options.h"
#include "fetch/wire.h"
#include "model/alarm.h"
#include "model/allocators.h"
#include "model/engine_kind.h"
#include "model/ptrace_wish.h"
#include "model/sampling.h"
#include "model/hidden_rules.h"
#include "store/history.h"
#include "tracer/wire.h"
#include "varlink/codec.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEBIBYTE (1ULL << 20)
#define DIGITS "0123456789"

/* --- kinds of values --- */

static int set_text(char **text, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

static int take_path(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	(void)setting;
	if (strlen(value) >= PATH_MAX)
		return reason_set(ret_reason, -EINVAL, "wants a path of less than %d bytes", PATH_MAX);
	return set_text(field, value);
}

static int take_folder(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	if (strcmp(value, STATE_NONE) == 0)
		return set_text(field, value);
	return take_path(setting, value, field, ret_reason);
}

static int take_count(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	int64_t number;

	if (units_parse_number(value, (int64_t)setting->least, (int64_t)setting->most, &number) < 0)
		return reason_set(ret_reason, -EINVAL, "wants a number from %llu to %llu, not '%.80s'",
				  (unsigned long long)setting->least, (unsigned long long)setting->most, value);
	*(size_t *)field = (size_t)number;
	return 0;
}

/* A number alone is mebibytes. */
static int take_bytes(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	bool bare = value[strspn(value, DIGITS)] == '\0';
	uint64_t bytes, unit = bare ? MEBIBYTE : 1;

	if (units_parse_size(value, &bytes) < 0 || bytes > setting->most / unit || bytes * unit < setting->least)
		return reason_set(ret_reason, -EINVAL,
				  "wants a size such as 512M or 4G, a number alone being mebibytes, from %llu to "
				  "%llu of them, not '%.80s'", (unsigned long long)(setting->least / MEBIBYTE),
				  (unsigned long long)(setting->most / MEBIBYTE), value);
	*(uint64_t *)field = bytes * unit;
	return 0;
}

static int take_seconds(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	uint64_t ns, seconds;

	if (units_parse_duration(value, &ns) < 0)
		return reason_set(ret_reason, -EINVAL, "wants a time such as 90, 10min or 1h, not '%.80s'", value);
	seconds = (ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
	if (seconds < setting->least || seconds > setting->most)
		return reason_set(ret_reason, -EINVAL, "wants a time from %llu to %llu seconds, not '%.80s'",
				  (unsigned long long)setting->least, (unsigned long long)setting->most, value);
	*(int64_t *)field = (int64_t)seconds;
	return 0;
}

/* Of each window of the kernel's. */
static int take_stall(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	uint64_t ns;

	(void)setting;
	if (units_parse_duration(value, &ns) < 0 || ns >= ALARM_WINDOW_NS || (ns > 0 && ns < NSEC_PER_MSEC))
		return reason_set(ret_reason, -EINVAL,
				  "wants a time from 1ms to less than %llu seconds, such as 200ms, or 0, not '%.80s'",
				  (unsigned long long)(ALARM_WINDOW_NS / NSEC_PER_SEC), value);
	*(uint64_t *)field = ns / NSEC_PER_USEC;
	return 0;
}

static int take_ring_wait(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	uint64_t ns;

	(void)setting;
	if (units_parse_duration(value, &ns) < 0 || ns < NSEC_PER_MSEC || ns > CODEC_RING_WAIT_MS_MAX * NSEC_PER_MSEC)
		return reason_set(ret_reason, -EINVAL, "wants a time from 1ms to %us, such as 100ms or 5s, not '%.80s'",
				  CODEC_RING_WAIT_MS_MAX / 1000, value);
	*(unsigned *)field = (unsigned)(ns / NSEC_PER_MSEC);
	return 0;
}

static int take_ring_readers(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	int64_t number = 0;

	(void)setting;
	if (strcmp(value, "auto") != 0 && units_parse_number(value, 1, CODEC_RING_READERS_MAX, &number) < 0)
		return reason_set(ret_reason, -EINVAL, "wants auto or a number from 1 to %u, not '%.80s'", CODEC_RING_READERS_MAX, value);
	*(unsigned *)field = (unsigned)number;
	return 0;
}

/* The words of systemd.syntax(7). */
static int take_bool(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	static const char *const words[] = { "no", "yes", "false", "true", "off", "on", "0", "1", "n", "y", "f", "t" };

	(void)setting;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(value, words[i]) == 0) {
			*(bool *)field = i % 2;
			return 0;
		}
	}
	return reason_set(ret_reason, -EINVAL, "wants yes or no, not '%.80s'", value);
}

static int take_word(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	char list[160] = "";

	for (unsigned i = 0; setting->words[i]; i++) {
		if (strcmp(value, setting->words[i]) == 0) {
			*(unsigned *)field = i;
			return 0;
		}
		strncat(list, i == 0 ? "" : ", ", sizeof(list) - strlen(list) - 1);
		strncat(list, setting->words[i], sizeof(list) - strlen(list) - 1);
	}
	return reason_set(ret_reason, -EINVAL, "wants one of %s, not '%.80s'", list, value);
}

static int take_address(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	struct metrics_address address;

	(void)setting;
	if (metrics_address_parse(value, &address) < 0)
		return reason_set(ret_reason, -EINVAL,
				  "wants an address such as 127.0.0.1:9772 or [::1]:9772, a path, or none, not '%.80s'",
				  value);
	return set_text(field, value);
}

static bool is_server(const char *word, size_t len)
{
	static const char *const schemes[] = { "http://", "https://", "file://" };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (len > strlen(schemes[i]) && strncmp(word, schemes[i], strlen(schemes[i])) == 0)
			return true;
	}
	return false;
}

static bool are_servers(const char *value)
{
	const char *word = value + strspn(value, " ");

	if (strlen(value) >= FETCH_URLS_MAX)
		return false;
	while (*word) {
		size_t len = strcspn(word, " ");

		if (!is_server(word, len))
			return false;
		word += len;
		word += strspn(word, " ");
	}
	return true;
}

static int take_servers(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	(void)setting;
	if (strcmp(value, DEBUGINFO_NONE) != 0 && strcmp(value, DEBUGINFO_ENVIRONMENT) != 0 && !are_servers(value))
		return reason_set(ret_reason, -EINVAL,
				  "wants no, environment, or servers such as https://debuginfod.debian.net, with spaces "
				  "between them, not '%.80s'", value);
	return set_text(field, value);
}

static size_t count_lines(const char *text)
{
	size_t lines = 1;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

/* One more of a list, whose texts are lines. */
static int append_line(char **list, const char *value)
{
	char *longer;

	if (!*list)
		return set_text(list, value);
	if (asprintf(&longer, "%s\n%s", *list, value) < 0)
		return -ENOMEM;
	free(*list);
	*list = longer;
	return 0;
}

/* Each line of the files adds one. */
static int take_hidden(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	const char *reason;
	char **list = field;

	(void)setting;
	if (hidden_rule_check(value, &reason) < 0)
		return reason_set(ret_reason, -EINVAL, "wants GLOB, @function=GLOB, @object=GLOB or @file=GLOB; '%.80s' %s",
				  value, reason);
	if (*list && count_lines(*list) >= HIDDEN_RULES_MAX)
		return reason_set(ret_reason, -EINVAL, "is there more than %d times", HIDDEN_RULES_MAX);
	return append_line(list, value);
}

/* Each line of the files describes one. */
static int take_allocator(const struct setting *setting, const char *value, void *field, char **ret_reason)
{
	struct allocator allocator;
	char **list = field, *reason = NULL;
	int r = allocator_parse(value, &allocator, &reason);

	(void)setting;
	if (r == -EINVAL)
		r = reason_set(ret_reason, -EINVAL, "'%.80s' %s", value, reason);
	else if (r == 0 && *list && count_lines(*list) >= WIRE_ALLOCATORS_MAX)
		r = reason_set(ret_reason, -EINVAL, "is there more than %d times", WIRE_ALLOCATORS_MAX);
	else if (r == 0)
		r = append_line(list, value);
	free(reason);
	return r;
}

/* --- the table --- */

static const char *const whose[] = { "own", "all", NULL };
static const char *const alarms_whose[] = { "watched", "all", NULL };

#define TEXT_FIELD(name) .offset = offsetof(struct options, name)
#define FIELD(name) .offset = offsetof(struct options, name), .size = sizeof(((struct options *)NULL)->name)

const struct setting settings[] = {
	{ "Daemon", "Socket", take_path, TEXT_FIELD(socket), .path = true },
	{ "Daemon", "MaxSessions", take_count, FIELD(limits.sessions), .least = 1, .most = 4096, .live = true },
	{ "Daemon", "MaxClients", take_count, FIELD(limits.clients), .least = 1, .most = 65536, .live = true },
	{ "Daemon", "IdleExit", take_seconds, FIELD(idle_exit_s), .most = INT_MAX, .live = true },
	{ "Daemon", "Heal", take_bool, FIELD(heal_at_start) },
	{ "Daemon", "LogLevel", take_word, FIELD(log_level), .words = log_levels, .live = true },
	{ "Daemon", "Tracer", take_path, TEXT_FIELD(tracer), .path = true },
	{ "Daemon", "TracerService", take_path, TEXT_FIELD(tracer_service), .path = true },
	{ "Daemon", "Symbolizer", take_path, TEXT_FIELD(symbolizer), .path = true },
	{ "Daemon", "Fetcher", take_path, TEXT_FIELD(fetcher), .path = true },
	{ "Daemon", "FetcherService", take_path, TEXT_FIELD(fetcher_service), .path = true },
	{ "Snapshots", "State", take_folder, TEXT_FIELD(state), .path = true },
	{ "Snapshots", "MaxSnapshots", take_count, FIELD(limits.snapshots), .least = 1, .most = 1000000, .live = true },
	{ "Snapshots", "MaxMemory", take_bytes, FIELD(limits.snapshot_bytes), .least = MEBIBYTE,
	  .most = UINT32_MAX * MEBIBYTE, .live = true },
	{ "Snapshots", "MaxDisk", take_bytes, FIELD(limits.file_bytes), .least = MEBIBYTE,
	  .most = UINT32_MAX * MEBIBYTE, .live = true },
	{ "Tracing", "Engine", take_word, FIELD(engine), .words = engine_kinds, .live = true },
	{ "Tracing", "Ptrace", take_word, FIELD(ptrace), .words = ptrace_wishes, .live = true },
	{ "Tracing", "RingReaders", take_ring_readers, FIELD(ring_readers), .live = true },
	{ "Tracing", "RingWait", take_ring_wait, FIELD(ring_wait_ms), .live = true },
	{ "Tracing", "SampleBytes", take_bytes, FIELD(sample_bytes), .most = SAMPLE_BYTES_MAX, .live = true },
	{ "Allocators", "Allocator", take_allocator, TEXT_FIELD(allocators), .live = true },
	{ "Frames", "Hide", take_hidden, TEXT_FIELD(hide), .live = true },
	{ "Names", "Debuginfod", take_servers, TEXT_FIELD(debuginfod), .live = true },
	{ "Alarms", "Processes", take_word, FIELD(alarms.whose), .words = alarms_whose, .live = true },
	{ "Alarms", "RssLimit", take_bytes, FIELD(alarms.rss_bytes), .most = HISTORY_SIZE_MAX, .live = true },
	{ "Alarms", "RssSlope", take_bytes, FIELD(alarms.slope_bytes), .most = HISTORY_SIZE_MAX, .live = true },
	{ "Alarms", "SlopeTime", take_seconds, FIELD(alarms.slope_s), .least = 2, .most = 86400, .live = true },
	{ "Alarms", "MemoryEvents", take_bool, FIELD(alarms.events), .live = true },
	{ "Alarms", "MemoryPressure", take_stall, FIELD(alarms.stalled_us), .live = true },
	{ "Alarms", "LeastTime", take_seconds, FIELD(alarms.least_s), .least = 1, .most = 86400, .live = true },
	{ "Metrics", "Listen", take_address, TEXT_FIELD(metrics_listen), .live = true },
	{ "Metrics", "Show", take_word, FIELD(metrics_show), .words = whose, .live = true },
	{ "Metrics", "Groups", take_count, FIELD(metrics_groups), .most = METRICS_GROUPS_MAX, .live = true },
	{ "Metrics", "Interval", take_seconds, FIELD(metrics_interval_s), .least = METRICS_INTERVAL_MIN_S, .most = 86400,
	  .live = true },
	{ .key = NULL },
};

static const struct options defaults = {
	.idle_exit_s = IDLE_EXIT_DEFAULT,
	.heal_at_start = true,
	.log_level = LOG_LEVEL_INFO,
	.ptrace = PTRACE_AUTO,
	.metrics_groups = METRICS_GROUPS_DEFAULT,
	.metrics_interval_s = METRICS_INTERVAL_DEFAULT_S,
	.alarms = { .slope_s = ALARM_SLOPE_DEFAULT_S, .least_s = ALARM_LEAST_DEFAULT_S, .events = true,
		    .stalled_us = ALARM_PRESSURE_DEFAULT_US },
	.limits = { .sessions = SESSIONS_MAX, .clients = CLIENTS_MAX, .snapshots = SNAPSHOTS_MAX,
		    .snapshot_bytes = SNAPSHOT_BYTES_MAX, .file_bytes = FILE_BYTES_MAX },
};

const struct setting *setting_find(const char *key)
{
	for (const struct setting *setting = settings; setting->key; setting++) {
		if (strcmp(setting->key, key) == 0)
			return setting;
	}
	return NULL;
}

static void *field_of(const struct setting *setting, struct options *options)
{
	return (char *)options + setting->offset;
}

static const void *value_of(const struct setting *setting, const struct options *options)
{
	return (const char *)options + setting->offset;
}

int setting_copy(const struct setting *setting, const struct options *from, struct options *to)
{
	char *const *text = value_of(setting, from);
	char **field = field_of(setting, to);

	if (setting->size > 0) {
		memcpy(field, value_of(setting, from), setting->size);
		return 0;
	}
	if (*text)
		return set_text(field, *text);
	free(*field);
	*field = NULL;
	return 0;
}

int setting_take(const struct setting *setting, const char *value, struct options *options, char **ret_reason)
{
	if (*value == '\0')
		return setting_copy(setting, &defaults, options);
	return setting->take(setting, value, field_of(setting, options), ret_reason);
}

bool setting_differs(const struct setting *setting, const struct options *a, const struct options *b)
{
	const char *const *text_a = value_of(setting, a), *const *text_b = value_of(setting, b);

	if (setting->size > 0)
		return memcmp(text_a, text_b, setting->size) != 0;
	return (*text_a == NULL) != (*text_b == NULL) || (*text_a && strcmp(*text_a, *text_b) != 0);
}

int settings_init(struct options *options)
{
	int r = 0;

	for (const struct setting *setting = settings; r == 0 && setting->key; setting++)
		r = setting_copy(setting, &defaults, options);
	return r;
}

void settings_free(struct options *options)
{
	for (const struct setting *setting = settings; setting->key; setting++) {
		if (setting->size == 0) {
			char **text = field_of(setting, options);

			free(*text);
			*text = NULL;
		}
	}
}
