/* Everything that a client or a target can make grow in the daemon, by name. */
#ifndef ALLOCWATCH_DAEMON_LIMITS_H
#define ALLOCWATCH_DAEMON_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* What options can change. */
struct limits {
	size_t sessions;              /* targets at the same time */
	size_t clients;               /* connections at the same time; each has one call at a time */
	size_t snapshots;             /* kept */
	uint64_t snapshot_bytes;      /* of all snapshots in memory */
	uint64_t file_bytes;          /* of all their files */
	unsigned idle_exit_s;         /* 0: stays */
};

/* Of what many users share, one who is not the daemon's own may have that much: sessions, connections, snapshots and
 * their bytes. */
#define OWNER_SHARE(all) ((all) > 4 ? (all) / 4 : 1)

#define SESSIONS_MAX 64
#define CLIENTS_MAX 512
#define SNAPSHOTS_MAX 512
#define SNAPSHOT_BYTES_MAX (4ULL << 30)
#define FILE_BYTES_MAX (16ULL << 30)
/* Of those that the daemon takes by itself, of one process (which may exec without an end). */
#define AUTOMATIC_SNAPSHOTS_MAX 4
/* Of the memory for snapshots the part that only those may take: they cannot be asked for again, and clients that read
 * slowly must not be in their way. */
#define AUTOMATIC_MEMORY(all) ((all) / 8)
/* A private daemon leaves this long after its last target, client and request. */
#define PRIVATE_IDLE_EXIT_S 600

/* --- clients --- */
/* Peers that may not ask anything share these few of the connections. */
#define STRANGERS_MAX 16
/* A message that has begun must be whole by then. */
#define HALF_MESSAGE_TIMEOUT_US (10ULL * 1000000)
/* An answer of which nothing is taken for so long is given up, with its connection. */
#define OUTPUT_STALL_TIMEOUT_US (120ULL * 1000000)
/* Of the connections so many may be subscribers: the others are there for calls. */
#define SUBSCRIBERS_OF(clients) ((clients) - (clients) / 4)
/* Events that a subscriber has not taken yet; further ones are counted, and the count is told. */
#define EVENTS_QUEUED_MAX 128
/* They are told that a client was refused so often at most. */
#define REFUSED_TELL_PERIOD_NS (10ULL * 1000000000)
/* Elements of a list among the parameters; of filters CODEC_FILTERS_MAX. */
#define PARAMETER_LIST_MAX 4096
/* A hundred years. */
#define AGE_MAX_MS (100LL * 365 * 24 * 3600 * 1000)
#define FRAMES_LIMIT_DEFAULT 25
#define FRAMES_LIMIT_MAX 1024
/* Rows of an answer in one message when the query says nothing; rows a piece of a stream. */
#define ROWS_DEFAULT 100
#define ROWS_PER_REPLY 256

/* --- tracers --- */
#define ATTACH_TIMEOUT_US (60ULL * 1000000)
#define SNAPSHOT_TIMEOUT_US (120ULL * 1000000)
#define REQUEST_TIMEOUT_US (20ULL * 1000000)
#define DETACH_TIMEOUT_US (30ULL * 1000000)
/* `list` shows the last known figures of a target that does not answer by then. */
#define LIST_TIMEOUT_US (2ULL * 1000000)
/* Until a new tracer is heard; the longest silence that one may announce; and what is added to its patience while it
 * runs, busily or as the machine lets it. */
#define FIRST_HEARTBEAT_MS 10000
/* Until systemd has started one. */
#define SERVICE_START_MS 20000
#define PATIENCE_MAX_MS 60000
#define SLOW_MS 3000
#define STARVED_MS 10000
/* The same for a process that heals another one: it waits ten seconds for threads that nothing breaks off. */
#define HEALER_PATIENCE_MS 30000
/* A process that is ready to heal is started that often at most; and where systemd starts it, after one that did not come. */
#define STANDBY_PAUSE_NS (1000ULL * 1000000)
#define STANDBY_REFUSED_PAUSE_NS (30000ULL * 1000000)
/* A tracer whose socket was closed undoes everything and leaves; then it is killed. */
#define TRACER_EXIT_GRACE_US (15ULL * 1000000)
/* One that was killed has ended by then, unless the kernel keeps it. */
#define KILLED_GRACE_US (2ULL * 1000000)
/* Requests that a tracer has not answered yet. */
#define TRACER_REQUESTS_MAX 256
/* Lines for the log that come from one tracer, in LOG_PERIOD_NS; further ones are counted. */
#define TRACER_LOG_LINES_MAX 100
#define MODULE_FILES_MAX 4096
/* A file for the symbolizer is opened by then, or one of its folders does not answer; who opens them must be started first
 * sometimes, and leaves when nobody has asked for so long. */
#define BROKER_TIMEOUT_US (3ULL * 1000000)
#define BROKER_START_US (10ULL * 1000000)
#define BROKER_IDLE_US (1ULL * 1000000)
/* What tracers have stored when their daemon was gone (of REFUGE_BYTES_MAX each): that many files are read at a start,
 * and none that is older.  One whose tracer still lives is looked at again, for a minute; then the next start does. */
#define LOST_FILES_MAX (2 * SESSIONS_MAX)
#define LOST_AGE_MAX_S (7 * 86400)
#define LOST_AGAIN_US (200ULL * 1000)
#define LOST_PATIENCE_S 60
/* Snapshots between a tracer's image and their names; what they take is limited with the memory for snapshots. */
#define INTAKES_MAX 512
/* The same of those that come by themselves, at an end, an exec or a detach: they cannot be asked for again. */
#define INTAKES_LAST_MAX 512
/* Lines for the log about snapshots that are not taken, and about those that cannot be written, in LOG_PERIOD_NS; further ones
 * are counted. */
#define SNAPSHOT_LOG_LINES_MAX 10
/* Smaller images than this are read though the memory for snapshots is taken: blocks are looked up by such ones. */
#define INTAKE_SMALL (64u << 10)
/* Callers of WaitGone and Detach for one target. */
#define SESSION_WAITERS_MAX 256
/* Ends that WaitGone still knows after the target is gone. */
#define ENDINGS_MAX 256

/* --- debug information from servers --- */
/* A server that sends nothing for so long is given up; so is any question after that, and its process if it does not end by
 * itself. */
#define DEBUGINFO_SILENCE_S 10
#define DEBUGINFO_TIME_S 120
#define DEBUGINFO_PATIENCE_US (135ULL * 1000000)
/* What could not be had is asked for again after this; when no server could be reached, or said nothing, so is all that its
 * user wants. */
#define DEBUGINFO_AGAIN_S 300
/* Questions at a time: all, and one user's; those that one user has waiting; files known, or known not to be there. */
#define DEBUGINFO_ASKED_MAX 8
#define DEBUGINFO_ASKED_USER_MAX 2
#define DEBUGINFO_QUEUED_MAX 256
#define DEBUGINFO_ENTRIES_MAX 4096
/* One file; files that are kept open, and their bytes, which have no other place than the disk of /var/tmp. */
#define DEBUGINFO_FILE_MAX (1ULL << 30)
#define DEBUGINFO_FILES_MAX 64
#define DEBUGINFO_BYTES_MAX (2ULL << 30)

/* --- names --- */
/* What is remembered is written that often, and at the daemon's end; see names_file.h. */
#define NAMES_KEEP_PERIOD_US (300ULL * 1000000)

/* --- alarms --- */
/* Resident memory is looked at that often. */
#define ALARMS_LOOK_US (1000ULL * 1000)
/* Snapshots of one process that are kept of those that alarms make; the oldest of them make way. */
#define ALARM_SNAPSHOTS_MAX 16
#define ALARM_PRESSURE_DEFAULT_US (200ULL * 1000)
#define ALARM_SLOPE_DEFAULT_S 300
#define ALARM_LEAST_DEFAULT_S 60

/* --- rules --- */
#define WATCH_EVERY_DEFAULT_MS (600 * 1000)
#define WATCH_EVERY_MIN_MS 100
#define WATCH_KEEP_DEFAULT 50
/* Rules and their history are tried again that often when they cannot be written. */
#define WATCH_SAVE_AGAIN_S 5

/* --- metrics --- */
/* Source lines that are told of one process, unless something else is asked for; at most; and of all processes together. */
#define METRICS_GROUPS_DEFAULT 10
#define METRICS_GROUPS_MAX 100
#define METRICS_GROUPS_TOTAL_MAX 20000
/* For these lines a process is asked that often at most, and rests for that many times as long as the last time took. */
#define METRICS_INTERVAL_DEFAULT_S 60
#define METRICS_INTERVAL_MIN_S 5
#define METRICS_REST 20
/* So many processes at a time. */
#define METRICS_SNAPSHOTS_MAX 2
/* A text is made of what is there by then. */
#define METRICS_DEADLINE_US (5ULL * 1000000)
/* Of the HTTP listener: connections at a time, each from its beginning to its end, memory of each for its request; who
 * asks again sooner gets the same text. */
#define METRICS_CONNECTIONS_MAX 16
#define METRICS_CONNECTION_S 20
#define METRICS_REQUEST_BYTES_MAX 16384
#define METRICS_SAME_TEXT_NS (1000000000ULL)

/* --- the daemon itself --- */
#define WORK_THREADS 2
#define WORK_QUEUE_MAX 4096
/* The service manager is told of changes that often at most. */
#define STATUS_PERIOD_US (500ULL * 1000)
/* SIGTERM: targets are let go and snapshots written by then. */
#define STOP_TIMEOUT_US (40ULL * 1000000)

/* --- descriptors --- */
/* Of a session: the target's pidfd, its tracer's socket and pidfd, what is on its way between them, and up to four files of
 * its cgroup. */
#define DESCRIPTORS_OF_SESSION 14
/* Sockets and timers of its own, files that are written, healers, the symbolizer; debug information. */
#define DESCRIPTORS_OF_DAEMON (128 + DEBUGINFO_FILES_MAX + 2 * DEBUGINFO_ASKED_MAX)
/* Those that are not files of modules: as many as all that have a limit may take at once. */
#define DESCRIPTORS_RESERVED(clients, sessions) \
	((clients) + INTAKES_MAX + INTAKES_LAST_MAX + (sessions) * DESCRIPTORS_OF_SESSION + DESCRIPTORS_OF_DAEMON)

#endif
