/* The daemon's side of the symbolizer process: hands it files and offsets, fills names into
 * snapshots, restarts it when it dies.  The daemon itself parses no ELF and no DWARF. */
#ifndef ALLOCWATCH_DAEMON_SYMBOLIZE_H
#define ALLOCWATCH_DAEMON_SYMBOLIZE_H

#include "daemon/file_user.h"
#include "daemon/generated.h"
#include "model/snapshot.h"

#include <systemd/sd-event.h>

struct symbolize;

/* program: path of the symbolizer; it is started on first use. */
int symbolize_new(sd_event *event, const char *program, struct symbolize **ret);
void symbolize_free(struct symbolize *symbolize);            /* accepts NULL; kills the process */

/* The symbolizer may be silent for so long, and one module may take so long in one snapshot, before it is killed and what was asked
 * stays without names. */
#define SYMBOLIZE_SILENCE_MS 20000
#define SYMBOLIZE_MODULE_MS 120000
/* All modules of one snapshot: what is left then stays without names.  The time of others' turns does not count, nor
 * for a module. */
#define SYMBOLIZE_SNAPSHOT_MS 300000
/* While other users wait one has a turn of so long, to the end of the module that is being asked about; past the second time
 * that is broken off and goes on in the next turn. */
#define SYMBOLIZE_TURN_MS 1000
#define SYMBOLIZE_LONG_TURN_MS 10000
/* A module that was silent, or could not be opened, in a long turn is put off: to the time when nobody else waits, or by so long
 * at most; then it has a turn of the second length. */
#define SYMBOLIZE_PUT_OFF_MS 60000
#define SYMBOLIZE_SLOW_TURN_MS 30000
/* For so long a snapshot, named as far as can be, waits for debug information from elsewhere; others go on. */
#define SYMBOLIZE_DEBUG_MS 60000

struct symbolize_times {
	uint64_t silence_ms, module_ms, snapshot_ms, turn_ms, long_turn_ms, debug_ms, put_off_ms, slow_turn_ms;
};
void symbolize_set_times(struct symbolize *symbolize, const struct symbolize_times *times);

/* Who opens files that belong to a module (broker.h): one at a time, and answers by symbolize_opened(), from the event
 * loop.  Without one there are none. */
struct symbolize_opener {
	void *context;
	/* names: of generated code, any regular file; else an ELF file. */
	void (*open)(void *context, const struct file_user *user, const char *path, bool names);
	/* It is of no interest any more: no answer. */
	void (*cancel)(void *context);
};
void symbolize_set_opener(struct symbolize *symbolize, const struct symbolize_opener *opener);
/* fd: taken over; or negative errno. */
void symbolize_opened(struct symbolize *symbolize, int fd);

/* Who has debug information of files for which this machine has none (debuginfo.h). */
struct symbolize_debug {
	void *context;
	/* Called from the event loop.  A descriptor, which stays the callee's; -EINPROGRESS: it is looked for, and
	 * symbolize_debug_arrived() will tell when it is worth to ask again; -ENOENT: there is none; another negative errno: it
	 * cannot be had now, and what has no name for that is not remembered. */
	int (*get)(void *context, const struct file_user *user, const uint8_t *build_id, size_t len);
};
void symbolize_set_debug(struct symbolize *symbolize, const struct symbolize_debug *debug);
void symbolize_debug_arrived(struct symbolize *symbolize);

/* What is remembered, to be kept over the daemon's end (names_file.h), and how many answers were, ever. */
int symbolize_encode(const struct symbolize *symbolize, void **ret_data, size_t *ret_len);
int symbolize_decode(struct symbolize *symbolize, const void *data, size_t len);
uint64_t symbolize_named(const struct symbolize *symbolize);

/* How often it ended before it was told to. */
uint64_t symbolize_deaths(const struct symbolize *symbolize);
/* The running process, or 0; whether it has been asked about a file and an answer is due. */
pid_t symbolize_pid(const struct symbolize *symbolize);
bool symbolize_is_asking(const struct symbolize *symbolize);

/* Resolves all frames of `snapshot` (as snapshot_image_read made it) and fills its locations and
 * strings, then calls done(context, snapshot, 0).  fds[i] is the ELF file of snapshot->modules[i],
 * borrowed until done, -1 when there is none; generated, likewise, NULL where it makes no code: its files are looked for
 * when the snapshot has frames in no module.  What cannot be resolved (no file, the symbolizer
 * crashed twice on it, a deadline) stays without locations; done is called in any case and only
 * from the event loop, except after symbolize_free().  Its result is negative when the symbolizer
 * could not be started or is not this daemon's (-EPROTONOSUPPORT), there was no memory or the snapshot's time
 * was over (-ETIMEDOUT); the snapshot then has the names found so far.
 *
 * Answers are cached across snapshots and targets, bounded by SYMBOLIZE_CACHE_MAX bytes.  The key is
 * the open file itself (device, inode, times, size) beside the build-id, never the build-id alone:
 * anybody can give a file the build-id of libc, and would put his names into other people's answers.  What one user may read
 * is in that user's answers only (user), who has a process of their own for it: what a file has made of the last one cannot
 * be asked of the next user's files.
 *
 * SYMBOLIZE_NAMES_MAX: bytes of names in one snapshot; what comes after stays unnamed.
 * Negative errno: not started, done is not called. */
#define SYMBOLIZE_CACHE_MAX (256u << 20)
#define SYMBOLIZE_NAMES_MAX (256u << 20)
int symbolize_snapshot(struct symbolize *symbolize, struct snapshot *snapshot, const int *fds,
		       size_t fd_count, const struct file_user *user, struct generated *generated,
		       void (*done)(void *context, struct snapshot *snapshot, int result),
		       void *context);

#endif
