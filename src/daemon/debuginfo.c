#include "daemon/debuginfo.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/vec.h"
#include "daemon/debuginfo_fetch.h"
#include "daemon/limits.h"
#include "daemon/log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum state {
	QUEUED,
	ASKED,
	HAD,
	FAILED,
};

/* One file for one user. */
struct entry {
	struct debuginfo *debuginfo;
	enum state state;
	struct wire_identity identity;
	uint64_t user_key;
	uint32_t owner;
	uint8_t build_id[FETCH_BUILD_ID_MAX];
	size_t build_id_len;
	struct debuginfo_fetch *fetch;       /* ASKED */
	int fd;                              /* HAD */
	uint64_t bytes;
	int error;                           /* FAILED, until then */
	uint64_t until_ns;                   /* CLOCK_MONOTONIC */
	uint64_t last_used;
};

struct debuginfo {
	sd_event *event;
	char *program, *service;
	char *servers;                       /* NULL: none */
	bool stopped;
	VEC_OF(struct entry *) entries;
	uint64_t clock;
	sd_event_source *go_on;
	void (*arrived)(void *context);
	void *context;
};

/* --- entries --- */

static void entry_free(struct entry *entry)
{
	debuginfo_fetch_free(entry->fetch);
	fd_close(&entry->fd);
	free(entry);
}

static void forget(struct debuginfo *debuginfo, size_t i)
{
	entry_free(debuginfo->entries.items[i]);
	vec_remove_unordered(&debuginfo->entries, i);
}

static bool is_settled(const struct entry *entry)
{
	return entry->state == HAD || entry->state == FAILED;
}

/* Of those that are settled, and of files only when it must be one. */
static size_t oldest(const struct debuginfo *debuginfo, bool had_only)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < debuginfo->entries.count; i++) {
		const struct entry *entry = debuginfo->entries.items[i];

		if ((had_only ? entry->state == HAD : is_settled(entry)) &&
		    (found == SIZE_MAX || entry->last_used < debuginfo->entries.items[found]->last_used))
			found = i;
	}
	return found;
}

static void keep_files_in_limits(struct debuginfo *debuginfo)
{
	for (;;) {
		uint64_t bytes = 0;
		size_t files = 0;

		for (size_t i = 0; i < debuginfo->entries.count; i++) {
			bytes += debuginfo->entries.items[i]->bytes;
			files += debuginfo->entries.items[i]->state == HAD;
		}
		if (files <= 1 || (files <= DEBUGINFO_FILES_MAX && bytes <= DEBUGINFO_BYTES_MAX))
			return;
		forget(debuginfo, oldest(debuginfo, true));
	}
}

static struct entry *find(const struct debuginfo *debuginfo, uint64_t user_key, const uint8_t *build_id, size_t len)
{
	for (size_t i = 0; i < debuginfo->entries.count; i++) {
		struct entry *entry = debuginfo->entries.items[i];

		if (entry->user_key == user_key && entry->build_id_len == len && memcmp(entry->build_id, build_id, len) == 0)
			return entry;
	}
	return NULL;
}

/* A server of which nothing was heard, or which cannot be reached, is not asked for the user's other files either, for as
 * long as for that one. */
static const struct entry *trouble_of(const struct debuginfo *debuginfo, uint64_t user_key)
{
	for (size_t i = 0; i < debuginfo->entries.count; i++) {
		const struct entry *entry = debuginfo->entries.items[i];

		if (entry->user_key == user_key && entry->state == FAILED && !clock_passed(entry->until_ns) &&
		    entry->error != -ENOENT && entry->error != -EFBIG && entry->error != -EBADMSG)
			return entry;
	}
	return NULL;
}

static void fail(struct entry *entry, int error, uint64_t until_ns)
{
	entry->state = FAILED;
	entry->error = error;
	entry->until_ns = until_ns;
}

/* --- questions --- */

static void go_on_soon(struct debuginfo *debuginfo)
{
	sd_event_source_set_enabled(debuginfo->go_on, SD_EVENT_ONESHOT);
}

static void log_failure(const struct entry *entry)
{
	if (entry->error == -ENOENT || entry->error == -ECANCELED)
		return;
	if (entry->error == -ENOSYS)
		log_warning("debug information is not asked for (Debuginfod=): allocwatch was built without libdebuginfod");
	else if (entry->error == -EFBIG || entry->error == -EBADMSG)
		log_info("debug information for user %u that a server had (Debuginfod=) is %s, and not used", entry->owner,
			 entry->error == -EFBIG ? "too large" : "no ELF file");
	else
		log_warning("debug information for user %u cannot be had from %s (Debuginfod=): %s; that is not tried again for %d "
			    "seconds", entry->owner, entry->debuginfo->servers ? entry->debuginfo->servers : "any server",
			    strerror(-entry->error), DEBUGINFO_AGAIN_S);
}

static void on_done(void *context, int fd)
{
	struct entry *entry = context;
	struct debuginfo *debuginfo = entry->debuginfo;
	struct stat st;

	debuginfo_fetch_free(entry->fetch);
	entry->fetch = NULL;
	entry->last_used = ++debuginfo->clock;
	if (fd >= 0 && fstat(fd, &st) == 0) {
		entry->state = HAD;
		entry->fd = fd;
		entry->bytes = (uint64_t)st.st_size;
		keep_files_in_limits(debuginfo);
	} else {
		fail(entry, fd < 0 ? fd : -EIO, clock_in_ms(DEBUGINFO_AGAIN_S * 1000ULL));
		log_failure(entry);
		fd_close(&fd);
	}
	go_on_soon(debuginfo);
}

static int ask(struct entry *entry)
{
	struct debuginfo *debuginfo = entry->debuginfo;
	struct fetch_request request = { .identity = entry->identity, .build_id_len = (uint32_t)entry->build_id_len,
					 .silence_s = DEBUGINFO_SILENCE_S, .time_s = DEBUGINFO_TIME_S,
					 .bytes_max = DEBUGINFO_FILE_MAX };
	int r;

	if (!debuginfo->program && !debuginfo->service)
		return -ENOENT;
	memcpy(request.build_id, entry->build_id, entry->build_id_len);
	strcpy(request.urls, debuginfo->servers);
	r = debuginfo_fetch_begin(debuginfo->event, debuginfo->program, debuginfo->service, &request, on_done, entry,
				  &entry->fetch);
	if (r == 0)
		entry->state = ASKED;
	return r;
}

static bool has_turn(const struct debuginfo *debuginfo, const struct entry *entry)
{
	size_t all = 0, of_user = 0;

	for (size_t i = 0; i < debuginfo->entries.count; i++) {
		const struct entry *other = debuginfo->entries.items[i];

		all += other->state == ASKED;
		of_user += other->state == ASKED && other->user_key == entry->user_key;
	}
	return all < DEBUGINFO_ASKED_MAX && of_user < DEBUGINFO_ASKED_USER_MAX;
}

static void go_on_with(struct debuginfo *debuginfo, struct entry *entry)
{
	const struct entry *trouble = trouble_of(debuginfo, entry->user_key);
	int r;

	if (debuginfo->stopped || !debuginfo->servers) {
		fail(entry, -ECANCELED, 0);
	} else if (trouble) {
		fail(entry, trouble->error, trouble->until_ns);
	} else if (has_turn(debuginfo, entry)) {
		r = ask(entry);
		if (r < 0) {
			fail(entry, r, clock_in_ms(DEBUGINFO_AGAIN_S * 1000ULL));
			log_failure(entry);
		}
	}
}

static int on_go_on(sd_event_source *source, void *context)
{
	struct debuginfo *debuginfo = context;

	(void)source;
	for (size_t i = 0; i < debuginfo->entries.count; i++) {
		if (debuginfo->entries.items[i]->state == QUEUED)
			go_on_with(debuginfo, debuginfo->entries.items[i]);
	}
	debuginfo->arrived(debuginfo->context);
	return 0;
}

static int queue(struct debuginfo *debuginfo, const struct file_user *user, const uint8_t *build_id, size_t len)
{
	struct entry *entry;
	size_t least;

	if (debuginfo->entries.count >= DEBUGINFO_ENTRIES_MAX) {
		least = oldest(debuginfo, false);
		if (least == SIZE_MAX)
			return -EBUSY;
		forget(debuginfo, least);
	}
	entry = vec_reserve(&debuginfo->entries, 1) < 0 ? NULL : calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	*entry = (struct entry){ .debuginfo = debuginfo, .identity = user->identity, .user_key = file_user_key(user),
				 .owner = user->owner, .build_id_len = len, .fd = -1, .last_used = ++debuginfo->clock };
	memcpy(entry->build_id, build_id, len);
	debuginfo->entries.items[debuginfo->entries.count++] = entry;
	go_on_soon(debuginfo);
	return -EINPROGRESS;
}

static size_t queued_of(const struct debuginfo *debuginfo, uint64_t user_key)
{
	size_t count = 0;

	for (size_t i = 0; i < debuginfo->entries.count; i++)
		count += debuginfo->entries.items[i]->user_key == user_key && debuginfo->entries.items[i]->state == QUEUED;
	return count;
}

int debuginfo_get(void *context, const struct file_user *user, const uint8_t *build_id, size_t len)
{
	struct debuginfo *debuginfo = context;
	uint64_t user_key = file_user_key(user);
	struct entry *entry;

	if (len < FETCH_BUILD_ID_MIN || len > FETCH_BUILD_ID_MAX)
		return -ENOENT;
	entry = find(debuginfo, user_key, build_id, len);
	if (!entry && (!debuginfo->servers || debuginfo->stopped))
		return debuginfo->stopped ? -ECANCELED : -ENOENT;
	if (!entry)
		return queued_of(debuginfo, user_key) < DEBUGINFO_QUEUED_MAX ? queue(debuginfo, user, build_id, len) : -EBUSY;
	entry->last_used = ++debuginfo->clock;
	if (entry->state == HAD)
		return entry->fd;
	if (entry->state == FAILED && (debuginfo->stopped || !debuginfo->servers || !clock_passed(entry->until_ns)))
		return entry->error;
	if (entry->state == FAILED) {
		entry->state = QUEUED;
		go_on_soon(debuginfo);
	}
	return -EINPROGRESS;
}

/* --- the whole --- */

int debuginfo_new(sd_event *event, const char *program, const char *service, void (*arrived)(void *context), void *context,
		  struct debuginfo **ret)
{
	struct debuginfo *debuginfo = calloc(1, sizeof(*debuginfo));
	int r = -ENOMEM;

	if (!debuginfo)
		return r;
	debuginfo->event = event;
	debuginfo->arrived = arrived;
	debuginfo->context = context;
	debuginfo->program = program ? strdup(program) : NULL;
	debuginfo->service = service ? strdup(service) : NULL;
	if ((debuginfo->program || !program) && (debuginfo->service || !service))
		r = sd_event_add_defer(event, &debuginfo->go_on, on_go_on, debuginfo);
	if (r >= 0)
		r = sd_event_source_set_enabled(debuginfo->go_on, SD_EVENT_OFF);
	if (r < 0) {
		debuginfo_free(debuginfo);
		return r;
	}
	*ret = debuginfo;
	return 0;
}

void debuginfo_free(struct debuginfo *debuginfo)
{
	if (!debuginfo)
		return;
	for (size_t i = 0; i < debuginfo->entries.count; i++)
		entry_free(debuginfo->entries.items[i]);
	vec_fini(&debuginfo->entries);
	sd_event_source_disable_unref(debuginfo->go_on);
	free(debuginfo->program);
	free(debuginfo->service);
	free(debuginfo->servers);
	free(debuginfo);
}

int debuginfo_set_servers(struct debuginfo *debuginfo, const char *setting)
{
	char *servers = NULL;

	if (setting && strcmp(setting, DEBUGINFO_ENVIRONMENT) == 0)
		setting = getenv("DEBUGINFOD_URLS");
	else if (setting && strcmp(setting, DEBUGINFO_NONE) == 0)
		setting = NULL;
	if (setting && *setting && strlen(setting) < FETCH_URLS_MAX) {
		servers = strdup(setting);
		if (!servers)
			return -ENOMEM;
	}
	free(debuginfo->servers);
	debuginfo->servers = servers;
	/* What was not to be had from the others may be from these. */
	for (size_t i = debuginfo->entries.count; i-- > 0;) {
		if (debuginfo->entries.items[i]->state == FAILED)
			forget(debuginfo, i);
	}
	return 0;
}

void debuginfo_stop(struct debuginfo *debuginfo)
{
	debuginfo->stopped = true;
	for (size_t i = 0; i < debuginfo->entries.count; i++) {
		struct entry *entry = debuginfo->entries.items[i];

		if (entry->state != ASKED)
			continue;
		debuginfo_fetch_free(entry->fetch);
		entry->fetch = NULL;
		entry->state = QUEUED;
	}
	go_on_soon(debuginfo);
}
