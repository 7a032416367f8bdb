/* One traced process in the tracer: the target with its probes, stacks and heap. */
#ifndef ALLOCWATCH_TRACER_SESSION_H
#define ALLOCWATCH_TRACER_SESSION_H

#include "base/retry.h"
#include "model/heap.h"
#include "model/ptrace_wish.h"
#include "model/stack.h"
#include "probe/engine.h"
#include "target/attach.h"
#include "target/bp.h"
#include "target/loader.h"
#include "target/target.h"
#include "tracer/hold.h"
#include "tracer/link.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>

/* Frames kept beyond the limit, for those that are hidden later. */
#define SESSION_SPARE_FRAMES 16
#define SESSION_FRAMES_MAX 1024
/* Calls that a thread may be in at the attach, one inside another, in handlers of signals, too. */
#define ORPHANS_PER_TASK 4
#define SESSION_STACK_NODES_DEFAULT (64u << 20)

/* A place where the process is let go: see guard.h. */
enum guard_kind {
	GUARD_EXECVE,                  /* (path): when it gains rights there */
	GUARD_EXECVEAT,                /* (folder's descriptor, path): likewise */
	GUARD_FEXECVE,                 /* (descriptor): likewise */
	GUARD_FORK,                    /* a process without ptrace makes one with a copy of its memory; has no breakpoint */
	GUARD_LEAK_CHECK,              /* a sanitizer's */
	GUARD_EXIT,                    /* in which that runs; planted where there is one */
	GUARD_SIGACTION,               /* no such place: the program sets its action for a signal there */
};

struct guard_site {
	enum guard_kind kind;
	uint32_t module;
	uint64_t vaddr;
	raddr address;                 /* of the breakpoint; 0: none */
	bool tried;
	uint8_t text[15];
	size_t text_len;
};

/* Which addresses a second free is told by, of a process that is traced from its start. */
#define FREED_OF_LATE 4096

struct session {
	struct link *link;
	int refuge_fd;                 /* see refuge.h; -1: none */
	struct target *target;
	struct engine *engine;
	struct described described;    /* what the user has described */
	struct unwinder *unwinder;
	struct stack_table *stacks;
	struct heap *heap;
	struct misuses misuses;        /* of this heap */
	bool misuse_told, heap_from_start;
	raddr freed_of_late[FREED_OF_LATE];    /* by a hash of the address */
	struct loader_hook hook_found; /* where the next one is to be planted; its address is 0: nowhere */
	bool hook_is_found;            /* it was looked for */
	struct breakpoint *loader_hook;
	VEC_OF(struct guard_site) guards;
	bool checks_leaks;             /* at its exit, by a sanitizer's runtime */
	bool uprobes_told, handler_told;
	uint64_t orphans_seen;         /* returns without a call, when they were last looked at */
	uint32_t tasks_at_attach;
	pid_t daemon;
	bool gives_up_rights;          /* this process began as root, and is or will be another user */
	uint32_t frames_limit;
	bool waits_for_exec;           /* `run`: nothing is probed before the exec */
	bool follows;                  /* its children become targets of their own */
	bool refused;                  /* it has begun a program that cannot be traced: to be let go */
	char farewell[256];            /* why it is let go though nobody asked for that */
	bool leaving;                  /* detached; some tasks could not be let go yet */
	bool set_aside;                /* detached for a while: what it knows is kept */
	bool resumed;
	uint64_t attached_realtime_ns;
	uint64_t probe_gaps;
	uint64_t lost_tasks;           /* threads past a limit, untraced */
	uint64_t not_followed;         /* children that should have been */
	uint32_t modules_known;        /* told to the daemon and to the unwinder */
	char refusal_told[256];        /* of a function that cannot be probed */
	uint64_t missed_told;          /* files of objects that cannot be had */
	bool modules_failed;           /* an object could not be read: its allocator is unseen */
	uint64_t stops;
	uint64_t failed_reads_cleared; /* of the engine's, those before the last clear */
	uint64_t out_of_order;         /* stops that may have been served before what had been recorded earlier */
	bool maps_change;              /* what is known of the objects is not of now: nothing is unwound */
	bool settles;                  /* all that was recorded waits for a record that is not finished */
	uint64_t next_room_ns;         /* not before, in the ring while threads are let go */
	bool wants_ring;
	uint64_t ring_size;            /* bytes; 0: its cgroup has no room for one */
	enum ptrace_wish ptrace;
	bool release_or_fail;          /* an attach that could not let it go would fail */
	bool may_release, released;    /* see release.h: unless something turns up that speaks against it; it is */
	enum hold_reason hold;         /* why it is not */
	bool loader_unwatched, execs_unwatched;        /* no jump had room there */
	bool alone;                    /* what is planned is for a process that is let go of ptrace */
	bool release_due;              /* it has executed a program: that is planted and let go when its C library has begun */
	bool exec_due;                 /* a thread waits to execute a program, for which the process is to be seized */
	bool exec_seen;                /* that one was about to was recorded while it is seized */
	bool watch_due;                /* a thread that has loaded an allocator waits until that is watched */
	uint64_t exec_deadline_ns;     /* it was, and is let go again then; 0: it was not */
	bool rights_due;               /* a thread waits to execute one that would lose rights, for which the process is to be let go */
	pid_t gains_rights;            /* the thread that was about to execute such a one last; 0: none */
	struct retry watch_again;
	bool unwatched, gap_told;      /* an allocator that it has loaded then is not watched yet; or was too late, which was told */
	uint32_t ring_wait_ms;
	uint8_t ring_readers;           /* threads; 0: as many as are needed */
	uint64_t sample_bytes;          /* as asked for; 0: all is recorded */
	bool ended;                    /* found so when it was to be let go */
	int exit_status;               /* of the thread group's leader, as from waitpid; -1 */
	uint32_t stack_nodes_max;
	struct heap_limits limits;
	char exe[WIRE_PATH_MAX];
	char command[WIRE_TEXT_MAX];
};

/* The target is the session's from now on, also when this fails. */
int session_new(struct link *link, const struct wire_attach *request, struct target *target,
		struct session **ret_session);
/* How large a ring the process may have, in bytes; 0: its cgroup has no room for any. */
uint64_t session_ring_size(pid_t pid);
void session_free(struct session *session);               /* accepts NULL */
/* Reads command and exe of the target anew. */
void session_name(struct session *session);
/* WIRE_ATTACHED or WIRE_EXECED: what program it is. */
void session_send_program(struct session *session, enum wire_type type, uint32_t serial);

/* attach.c: attaches as asked.  0, or negative errno after the failure was told; all tasks are then let go, -EUCLEAN: and
 * session_left_something() holds.  On success all tasks are held, and WIRE_ATTACHED is to be sent. */
int session_attach(struct link *link, const struct wire_attach *request, struct session **ret_session);
/* Attaches again, after session_set_aside(), as session_attach(); when it fails the session stays set aside. */
int session_resume(struct session *session, const struct wire_attach *request);
/* The tracer becomes the target's user, unless root's rights will be needed once more. */
void session_drop_privileges(struct session *session);

/* detach.c: undoes everything and lets all tasks go that could be stopped; the others are let go at their next
 * stop.  *ret_text (static, or NULL) says what had to stay.  `ended` is set when the process is gone. */
bool session_detach(struct session *session, const char **ret_text);
/* The same for a while: what is known stays, and session_resume() takes it up again. */
bool session_set_aside(struct session *session, const char **ret_text);
/* Something had to stay that the daemon, which is root, heals. */
bool session_left_to_root(const struct session *session);
/* That, or what failed here and may be possible for a fresh process. */
bool session_left_something(const struct session *session);

/* Tells the daemon, the unwinder and the engine of objects not known yet. */
int session_add_modules(struct session *session);
/* Tells the daemon of all that are known, whom it has not been told of before. */
void session_tell_modules(struct session *session);
/* A new engine in the place of one whose breakpoints are all taken out.  -ENOMEM. */
int session_renew_engine(struct session *session);
/* The same in the place of one of which nothing was planted, in a process that is prepared. */
int session_replace_engine(struct session *session);
/* Tells an engine that samples and is new to them of the blocks that live. */
void session_tell_blocks(struct session *session);
/* Makes the changes to the target, whose threads are held. */
int session_plant(struct session *session);
/* The loader's hook, where it was found, is to have its place in the same stop: before all are held, or planted in. */
void session_expect_loader(struct session *session);
/* The same in a process that is prepared. */
int session_plant_engine(struct session *session);
/* While threads go on one after the other, those that run may fill the ring: whether it is almost full, and not long after room was made;
 * and to make some, by serving calls alone that nobody waits for.  Of a struct session. */
bool session_room_is_due(void *session);
void session_make_room(void *session);
/* attach.c: seizes and holds it, and plants.  0 or more, or negative errno: what was done is to be undone by session_detach(). */
int session_seize(struct session *session);
/* The old heap, and all that was known of the program, has ended with its memory, which `task` has left, or nobody is held (NULL). */
void session_forget_program(struct session *session, struct task *task);
/* A heap for another one; from_start: of which nothing was missed.  0 or negative errno. */
int session_begin_tables(struct session *session, bool from_start);
/* The process runs a program for another CPU, or a 32-bit one. */
bool session_is_foreign(pid_t tid);
/* After exec: the old heap has ended, the new program is probed from its first instruction; or `refused` is set, and
 * the log says why. */
void session_exec(struct session *session, struct task *task);
/* The loader's list of objects changed; a task is held.  Afterwards others may be, too. */
void session_objects_changed(struct session *session);
/* The same where nobody is held, so that nothing can be planted: 1: an allocator is among what came; 0, negative errno: none is. */
int session_look_at_objects(struct session *session);
/* What the engine tells of the session's heap, and asks of it. */
struct engine_sink session_sink(struct session *session);
/* From then on the heap's blocks are samples, and the engine hears of each that leaves it. */
void session_start_sampling(struct session *session);
/* Once a second, and before each answer: are our int3s still there, and do they still stop threads? */
void session_verify(struct session *session);

/* Why it is not traced without ptrace, in words; NULL: it is, or is about to be. */
const char *session_hold_text(const struct session *session);
/* Its threads, and processes that share its memory where ptrace is held. */
uint32_t session_task_count(const struct session *session);
/* Why the int3 engine serves though the ring was asked for; NULL: it does not, or was not. */
const char *session_engine_reason(const struct session *session);
/* Events that are not in the heap, nor counted by it, since the last clear. */
uint64_t session_lost_events(const struct session *session);
/* Of heap_clear(), and what was lost beside the heap. */
void session_clear(struct session *session);
bool session_is_exact(const struct session *session);
uint64_t session_truncated(const struct session *session);
size_t session_memory(const struct session *session);
void session_send_status(struct session *session, uint32_t serial);
void session_send_blocks(struct session *session, uint32_t serial, uint64_t address);
/* Frees that should not have been. */
void session_send_misuses(struct session *session, uint32_t serial);

/* Tells the daemon of functions that cannot be probed, once. */
void session_tell_refusal(struct session *session);
/* What to say of an object whose file cannot be had, the last one; NULL: there is none. */
const char *session_missed(const struct session *session, char *text, size_t space);

/* A message of one line to the daemon. */
void session_fail(struct link *link, uint32_t serial, pid_t pid, enum wire_failure failure, pid_t other,
		  const char *format, ...) __attribute__((format(printf, 6, 7)));

/* The process is about to be let go though nobody asked for that: the log and who waits for its end hear why. */
void session_say_farewell(struct session *session, enum wire_failure failure, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
