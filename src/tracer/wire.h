/* The messages between the daemon and one tracer, over a private SOCK_SEQPACKET socketpair.
 *
 * Every message is a wire_head followed by its body, fixed in size; each side treats the other's as
 * hostile: wire_check() before anything else.  A reply carries the request's serial.  Files travel
 * beside a message as its one descriptor. */
#ifndef ALLOCWATCH_TRACER_WIRE_H
#define ALLOCWATCH_TRACER_WIRE_H

#include "model/allocators.h"
#include "model/engine_kind.h"
#include "model/heap.h"
#include "model/misuses.h"
#include "model/module.h"
#include "model/ptrace_wish.h"

#include <stddef.h>
#include <stdint.h>

#define WIRE_PATH_MAX 4096
#define WIRE_TEXT_MAX 1024
#define WIRE_BLOCKS_MAX 16
#define WIRE_GROUPS_MAX 64
#define WIRE_ALLOCATORS_MAX 8  /* that a user describes, of one process */
#define WIRE_DOMAINS 5         /* DOMAIN_MALLOC to DOMAIN_NEW_ARRAY */

enum wire_type {
	/* daemon -> tracer */
	WIRE_ATTACH = 1,       /* body wire_attach; descriptor: a pidfd.  Answer: ATTACHED or FAILED */
	WIRE_SNAPSHOT,         /* body wire_snapshot_request.  Answer: SNAPSHOT or FAILED */
	WIRE_STATUS,           /* Answer: STATUS or FAILED */
	WIRE_BLOCK,            /* body wire_block_request.  Answer: BLOCKS or FAILED; the stacks are
				* in a SNAPSHOT image sent with it: descriptor */
	WIRE_CLEAR,            /* Answer: DONE */
	WIRE_RESET_PEAK,       /* Answer: DONE */
	WIRE_DETACH,           /* Answer: DETACHED; the tracer exits when nothing is left to trace */
	WIRE_SET_ASIDE,        /* The same, but the tracer stays with what it knows.  Another ATTACH takes it up
				* again, which says so in its warning. */
	WIRE_ALIVE,            /* no body: the answer to each HEARTBEAT */
	WIRE_REFUGE,           /* no body; descriptor: an empty file, locked, for what the tracer knows when the
				* daemon is gone */
	WIRE_RECALL,           /* body wire_recall; descriptor: such a file, of a daemon before this one.  To a tracer
				* that has nothing else to do.  Answer: its MODULEs and its SNAPSHOT_READY, or FAILED */
	WIRE_HEAL,             /* no body: takes out what dead tracers have left in process head.pid and others of its
				* program, 0: in all.  To a tracer that has nothing else to do.  Answer: DONE or FAILED; of
				* a process that stands by (heal_stand_by()) its exit status */
	WIRE_OPEN,             /* body wire_open.  To a tracer that has nothing else to do.  Answer: OPENED */
	WIRE_MISUSES,          /* Answer: MISUSES_REPLY or FAILED */
	WIRE_STAND_BY,         /* no body; the first word, or none: a HEAL may follow.  Answer: one HEARTBEAT, when it is ready */
	/* tracer -> daemon */
	WIRE_ATTACHED = 32,    /* body wire_attached */
	WIRE_FAILED,           /* body wire_failed */
	WIRE_MODULE,           /* body wire_module; descriptor: its ELF file, or none */
	WIRE_SNAPSHOT_READY,   /* body wire_snapshot_ready; descriptor: a sealed memfd image */
	WIRE_STATUS_REPLY,     /* body wire_status */
	WIRE_BLOCKS,           /* body wire_blocks; descriptor: a sealed memfd image */
	WIRE_DONE,             /* no body */
	WIRE_DETACHED,         /* body wire_detached */
	WIRE_TARGET_GONE,      /* body wire_gone, after its "exit" SNAPSHOT_READY */
	WIRE_HEARTBEAT,        /* body wire_heartbeat, every HEARTBEAT_MS.  Answer: ALIVE */
	WIRE_EXECED,           /* body wire_attached: the target runs another program now */
	WIRE_FORKED,           /* body wire_forked; descriptor: the socket of the tracer that has the child */
	WIRE_LOG,              /* body wire_failed: a warning for the log */
	WIRE_OPENED,           /* body wire_opened; descriptor: the file, when there is one */
	WIRE_MISUSES_REPLY,    /* body wire_misuses; descriptor: a sealed memfd image with the stacks */
};

/* The exit status of a tracer without rights of its own that had to leave something in the process or in copies of it,
 * which takes root to take out: healing does. */
#define TRACER_LEFT_SOMETHING 3

struct wire_head {
	uint32_t type;
	uint32_t serial;       /* of the request; 0 when unasked */
	int32_t pid;           /* the target */
	uint32_t length;       /* of the whole message, head included */
};

/* See model/allocators.h. */
struct wire_allocator {
	uint32_t domain;               /* the number that its domain is to have; 0: there is none */
	char text[ALLOCATOR_TEXT_MAX];
};

struct wire_attach {
	struct wire_head head;
	uint32_t frames_limit;
	uint32_t domains;              /* bit 1 << enum alloc_domain */
	uint64_t start_time;           /* expected field 22 of /proc/PID/stat: a reused PID is refused */
	uint8_t from_exec;             /* the target waits to be seized and then execs: `run`, the shim */
	uint8_t follow_forks;
	uint8_t as_owner;              /* the tracer becomes the user who asks, before it looks at anything */
	uint8_t engine;                /* enum engine_kind */
	uint32_t owner_uid, owner_gid, owner_group_count;
	uint32_t owner_groups[WIRE_GROUPS_MAX];
	uint64_t max_blocks;           /* limits; 0: default */
	uint64_t max_stack_nodes;
	struct wire_allocator allocators[WIRE_ALLOCATORS_MAX];
	uint32_t ring_wait_ms;         /* 0: default */
	uint8_t ptrace;                /* enum ptrace_wish: whether ptrace is let go once it is attached to, see release.h */
	uint8_t release_or_fail;       /* with PTRACE_RELEASE: where that cannot be, it is not attached to */
	uint8_t ring_readers;          /* threads; 0: as many as are needed */
	uint8_t pad;
	uint64_t sample_bytes;         /* one sample for so many bytes; 0: all */
};

struct wire_attached {
	struct wire_head head;
	uint64_t start_time;
	uint64_t attached_realtime_ns;
	uint32_t tasks, probes;
	char exe[WIRE_PATH_MAX];
	char command[WIRE_TEXT_MAX];
	char warning[256];         /* what the user should know of it, or "" */
	char hold_reason[256];     /* why ptrace is not let go, where that was not asked for and is not said by `warning`; or "" */
	uint32_t released, pad;    /* it is */
};

/* How a file that another tracer has stored is read: as the user whose process it was, who may have put anything there. */
struct wire_recall {
	struct wire_head head;
	uint32_t owner_uid;
	uint8_t as_owner;              /* the tracer becomes that user first */
	uint8_t without_files;         /* the modules' files are not opened: that hung, or was the end of the last one */
	uint8_t pad[2];
};

/* Whose rights a process is to have. */
struct wire_identity {
	uint32_t as_other;             /* 0: it stays who it is, and all else is 0 */
	uint32_t uid, gid, group_count;
	uint32_t groups[WIRE_GROUPS_MAX];
};

/* A file is opened as that user, who has not changed since the last one. */
struct wire_open {
	struct wire_head head;
	struct wire_identity identity;
	uint32_t names, pad;           /* 1: names of generated code, any regular file; the path may go through
					* /proc/PID/root of the head's process.  0: an ELF file */
	char path[WIRE_PATH_MAX];
};

struct wire_opened {
	struct wire_head head;
	int32_t result;                /* 0 or negative errno: there is no descriptor */
	uint32_t pad;
};

/* A child of the target that is followed: from now on a target of its own, with a tracer of its own. */
struct wire_forked {
	struct wire_head head;     /* of the parent */
	int32_t child, tracer;     /* pids */
	uint64_t start_time;       /* of the child */
};

enum wire_failure {
	FAILURE_NO_SUCH_PROCESS = 1,
	FAILURE_NOT_PERMITTED,
	FAILURE_UNSUPPORTED,       /* 32-bit target, ... */
	FAILURE_NO_ALLOCATOR,
	FAILURE_GONE,              /* it ended meanwhile */
	FAILURE_NOT_TRACED,
	FAILURE_LIMIT,
	FAILURE_INTERNAL,
};

struct wire_failed {
	struct wire_head head;
	uint32_t failure;          /* enum wire_failure */
	int32_t other_tracer;      /* pid of who traces it already, or 0 */
	char text[WIRE_TEXT_MAX];  /* one line: what failed, on what, why, what to do */
};

struct wire_module {
	struct wire_head head;
	uint32_t module;           /* its id; images number those they use anew, so the daemon
				    * finds a module's file by path and build-id */
	uint32_t build_id_len;
	uint8_t build_id[BUILD_ID_MAX];
	char path[WIRE_PATH_MAX];
};

/* Of a file that a tracer stores: all of them together stay below the daemon's own limit of files. */
#define REFUGE_BYTES_MAX (256ULL << 20)

#define HEARTBEAT_MS 500
#define HEARTBEAT_PATIENCE_MS 1000
#define HEARTBEAT_RELEASED_MS 5000     /* without ptrace: nobody is held meanwhile */

struct wire_heartbeat {
	struct wire_head head;
	uint32_t patience_ms;      /* the next one comes by then, or the tracer is stuck */
	uint32_t pad;
};

struct wire_snapshot_request {
	struct wire_head head;
	uint8_t with_blocks;
	uint8_t pad[7];
};

enum wire_snapshot_reason {
	SNAPSHOT_ASKED = 0, SNAPSHOT_EXIT = 1, SNAPSHOT_EXEC = 2, SNAPSHOT_DETACH = 3,
	SNAPSHOT_LOST = 4,         /* the answer to a RECALL */
};

struct wire_snapshot_ready {
	struct wire_head head;
	uint32_t reason;           /* enum wire_snapshot_reason */
	uint32_t pad;
};

struct wire_status {
	struct wire_head head;
	struct heap_counters counters;
	struct {
		uint64_t live_bytes, live_blocks;
	} domains[WIRE_DOMAINS];                /* by enum alloc_domain */
	struct {
		uint32_t domain, pad;
		uint64_t live_bytes, live_blocks;
	} user_domains[WIRE_ALLOCATORS_MAX];    /* of described allocators; domain 0: none */
	uint64_t truncated_stacks, probe_gaps;
	uint64_t tracer_memory, block_memory;   /* bytes */
	uint64_t longest_stop_us;               /* attach, snapshot and other stops of all threads */
	uint64_t held_us;                       /* all threads together, ever */
	uint64_t events;                        /* stops handled */
	uint64_t sample_bytes;                  /* the figures are estimates of one sample for so many bytes; 0: they are not */
	uint64_t ring_stacks_ahead;             /* that further readers of the ring have unwound */
	uint64_t ring_waits;                    /* calls that had to wait for room in the ring */
	uint64_t children_not_followed;         /* that should have been: past a limit, or without the right to */
	uint32_t tasks, probes;
	uint32_t frames_limit;
	uint8_t exact, crash_safe, stopped;     /* stopped: by job control */
	uint8_t engine;                         /* enum engine_kind: int3 or ring */
	uint32_t pending_calls;
	uint32_t released;                      /* it is traced without ptrace */
	uint32_t ring_wait_ms;                  /* for how long one waits at most; 0: there is no ring */
	uint32_t ring_readers;                  /* threads that read it now */
	char hold_reason[256];                  /* why ptrace is not let go; "": it is */
	char crash_unsafe_reason[256];
	char engine_reason[256];                /* why it is not the one that was asked for, or not all of it; or "" */
};

struct wire_block_request {
	struct wire_head head;
	uint64_t address;
};

struct wire_blocks {
	struct wire_head head;
	uint32_t count, pad;
	struct {
		uint64_t address, size, age_ns;
		uint32_t domain, thread;
		uint32_t trace, pad;       /* trace: in the image */
	} block[WIRE_BLOCKS_MAX];          /* innermost first */
};

struct wire_misuses {
	struct wire_head head;
	uint64_t more;             /* that are not in the list */
	uint32_t count, pad;
	struct {
		uint64_t address, size, count;
		uint32_t kind, made_form, freed_forms, thread;      /* see model/misuses.h */
		uint32_t freed_trace, made_trace;                   /* in the image; UINT32_MAX: there is none */
	} misuse[MISUSES_MAX];
};

struct wire_detached {
	struct wire_head head;
	uint8_t clean;             /* everything was undone; else text says what was left */
	uint8_t pad[7];
	char text[WIRE_TEXT_MAX];
};

struct wire_gone {
	struct wire_head head;
	int32_t wait_status;       /* as from waitpid; -1 unknown */
	uint32_t pad;
};

/* The largest message. */
#define WIRE_MESSAGE_MAX 16384

/* 0 when data (aligned as by malloc) is a whole message of a type that this direction may carry, its
 * length is that of the type, its texts end in NUL and its counts are in range; else -EBADMSG. */
int wire_check(const void *data, size_t len, int from_tracer);

#endif
