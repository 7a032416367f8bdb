/* A probe_engine turns allocator calls into alloc_events.
 *
 * It knows no snapshots and no clients: events go to a sink, in their true order.  What decides which
 * engine serves a probe is engine_choose() alone. */
#ifndef ALLOCWATCH_PROBE_ENGINE_H
#define ALLOCWATCH_PROBE_ENGINE_H

#include "model/event.h"
#include "model/misuses.h"
#include "probe/described.h"
#include "target/bp.h"
#include "target/loader.h"
#include "target/target.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;

struct engine_block {
	uint32_t domain, stack;
	uint64_t size;
};

struct engine_sink {
	void (*event)(void *context, const struct alloc_event *event);
	/* Whether a block is known at exactly this address. */
	bool (*is_live)(void *context, raddr address, uint32_t domain);
	/* A parked block whose resize never returned. */
	void (*abandoned)(void *context, int32_t tid, raddr old_address);
	/* What follows may be missing.  Whether a free of this address, at which no block lives, is nobody's. */
	bool (*is_wild)(void *context, raddr address, uint32_t domain);
	/* The live block at exactly this address: its domain, stack and size. */
	bool (*find)(void *context, raddr address, uint32_t domain, struct engine_block *ret);
	/* A free that should not be; its kind is a mismatch, or a wild free, which may be a second one. */
	void (*misused)(void *context, const struct misuse *misuse);
	/* The loader's list of objects changes, by what the ring has recorded (engine_watch_loader).  True: whose thread that is is to wait
	 * until engine_let_waiting_go().  NULL: nobody asks. */
	bool (*objects_changed)(void *context);
	/* A thread is about to execute a program, by the function at this address (engine_watch_execs), with these arguments.  True: it is to
	 * wait, too.  NULL: nobody asks. */
	bool (*executes)(void *context, pid_t tid, raddr function, const uint64_t args[3]);
	void *context;
};

struct engine_counters {
	uint64_t stops;                /* breakpoints served */
	uint64_t records;              /* of the ring */
	uint64_t waits;                /* calls that found no room in it at first, as the program says it */
	uint64_t stacks_ahead;         /* that helpers of the reader have unwound (ring_ahead.h) */
	uint64_t allocations, frees;   /* events handed on */
	uint64_t strays;               /* stops at a return of no pending call: of one inside another, mostly */
	uint64_t orphans;              /* those of a thread that has no call pending at all: its entry was missed */
	uint64_t internal_frees;       /* of the allocator's own, see struct plan */
	uint64_t failed_reads;         /* lost events: a result that could not be read, records that had no room or came too late */
};

/* All that is given outlives the engine.  described: allocators of the user's; NULL: there are none.  -ENOMEM. */
int engine_new(struct target *target, struct unwinder *unwinder, const struct engine_sink *sink,
	       uint32_t max_frames, struct described *described, struct engine **ret_engine);
void engine_free(struct engine *engine);          /* accepts NULL */

/* The ring engine, wherever it can: before anything is planned. */
struct ring_options {
	uint64_t size;                 /* bytes: a power of two from RING_SIZE_MIN to RING_SIZE_MAX */
	uint32_t wait_ms;              /* for room; then calls are lost */
	bool alone;                    /* without breakpoints beside it, and without who would be stopped at them: the process will
					* not be traced by ptrace */
	uint64_t sample_bytes;         /* a sample for so many bytes, at most RING_SAMPLE_MAX; 0: all is recorded */
	unsigned readers;              /* threads that read it, from the start; 0: as many as are needed and processors are left for */
};
#define ENGINE_AUTO_HELPERS_MAX 4u         /* of a reader, where it is not said how many */
#define RING_SIZE_DEFAULT (8u << 20)
#define RING_WAIT_MS_DEFAULT 100
void engine_want_ring(struct engine *engine, const struct ring_options *options);
/* Before it is installed: it is not wanted any more, and why (a text that stays). */
void engine_refuse_ring(struct engine *engine, const char *reason);
bool engine_has_ring(const struct engine *engine);
/* How many threads read it now; 0: there is none. */
unsigned engine_readers(const struct engine *engine);
/* Around a fork whose child goes on with a copy of the engine (engine_ring_leave): helpers of the reader rest, which may take some
 * milliseconds. */
void engine_before_fork(struct engine *engine);
void engine_after_fork(struct engine *engine);
/* Threads are held: the process has come so far that a ring could be had, or be seen not to be to have. */
bool engine_may_begin(const struct engine *engine);
/* Of a ring that is alone: who comes to the loader's hook writes a record, and waits until the sink has heard of it, as long as for room.
 * All threads are held.  0; -ENOTSUP: there is no room for a jump in it; or negative errno. */
int engine_watch_loader(struct engine *engine, const struct loader_hook *hook);
/* Before each time that it is installed: that will be asked in the same stop, for the hook at this address. */
void engine_expect_loader(struct engine *engine, raddr hook);
/* The same for functions that execute a program, of which the sink hears before; a process that has only the memory (vfork) does not
 * wait, nor who has a filter for system calls.  0, with the `error` of each; or negative errno. */
#define ENGINE_EXECS_MAX 64
struct engine_exec {
	raddr function;
	uint32_t module;
	const uint8_t *text;           /* what stands there */
	size_t text_len;
	int error;                     /* -ENOTSUP: there is no room for a jump; or another negative errno */
};
int engine_watch_execs(struct engine *engine, struct engine_exec *execs, size_t count);
/* Who waits for the sink goes on. */
void engine_let_waiting_go(struct engine *engine);
/* Whether that stands. */
bool engine_watches_loader(const struct engine *engine);
/* When the sink has heard of it: whether the threads that were there then have not gone on yet. */
bool engine_loader_has_waited(const struct engine *engine);
/* Whether somebody may have been there without a record, since this was last asked. */
bool engine_take_missed_change(struct engine *engine);
bool engine_misses_change(const struct engine *engine);
/* What is planned and not installed yet is to have jumps, for which all threads have to be held then; else int3s serve it. */
bool engine_wants_all_held(const struct engine *engine);
/* Whether only samples are told: from the first event on, or never. */
bool engine_is_sampling(const struct engine *engine);
/* A block is live that was told to another engine of the process. */
void engine_block_known(struct engine *engine, raddr address);
/* A block that was told has left; only with sampling something is to be done then. */
void engine_block_left(struct engine *engine, raddr address);
/* A filter for system calls that the process has set since may kill for those that the code in it makes: from then on it makes none. */
void engine_look_for_filters(struct engine *engine);
/* Who records will wait for room soon; and some of it, by reading records of calls as far as nobody waits for their being read, nor
 * anything is looked up for them that takes its time. */
bool engine_is_almost_full(const struct engine *engine);
void engine_make_room(struct engine *engine);
/* Once threads go on in which a ring has begun: what was put off until then. */
void engine_look_at_noted_stacks(struct engine *engine);
/* A stack that the code in the process copies from may have got a hole: some threads are asked each time, the others the next times. */
void engine_look_for_holes(struct engine *engine);
/* Why there is none though it was wanted; NULL: none was, or there is one. */
const char *engine_ring_refusal(const struct engine *engine);
/* Of a ring that is alone: how many places nothing stands at. */
size_t engine_unwatched(const struct engine *engine);
/* Of what is planned and not installed: whether a place could have no jump, as far as that is known before. */
bool engine_lacks_room(const struct engine *engine);
/* With a ring: how many places have breakpoints all the same, and why one of them has; NULL: none. */
const char *engine_int3_beside(const struct engine *engine, char *text, size_t space);
/* That, and how many jumps are not proof against a debugger's breakpoints (jumps_exposed); NULL: neither is to be said. */
const char *engine_ring_limits(const struct engine *engine, char *text, size_t space);
/* Serves records.  How many, at most `most`; 0: there were none; -EAGAIN: the next one is still being written, by *ret_writer
 * (may be NULL) where that is known, else 0. */
int engine_read_ring(struct engine *engine, unsigned most, pid_t *ret_writer);
/* Where the ring ends now; and serves all that was recorded up to there.  False: a record before that is still being written, by
 * *ret_writer as above. */
uint64_t engine_ring_head(const struct engine *engine);
/* Of the next record that is to be read. */
uint64_t engine_ring_position(const struct engine *engine);
bool engine_read_until(struct engine *engine, uint64_t head, pid_t *ret_writer);
/* Counts what threads did not record since the ring was full for too long: in engine_read_until() when that is over, and at an answer
 * that is made without. */
void engine_take_losses(struct engine *engine);
/* Whether the record that is under way was awaited in vain before; given_up: it has been now. */
bool engine_is_late(struct engine *engine, bool given_up);
/* Serves all that was recorded before this call, waiting a little for what is being written.  False: not all. */
bool engine_catch_up(struct engine *engine);
/* The same when no answer can come later: what could not be read counts as a loss. */
void engine_read_last(struct engine *engine);
/* Passes the record that is not finished: all threads are held, and none of them will write it. */
void engine_pass_record(struct engine *engine);
/* The same of one that its writer, which lives and is not held, may go on with, where others write by then. */
void engine_pass_living(struct engine *engine);
/* Whether such a one may still do so.  False when it has ended, or all threads were held and settled since, and none was in such a record. */
bool engine_may_be_overwritten(struct engine *engine);
/* All threads are held, as far as they can be, and settled (jumps_settle): handlers that go on in the midst of a record when they end will
 * go on before it, or behind it; then what is reserved and written by nobody any more is no record.  True: all is committed, or
 * void. */
bool engine_settle(struct engine *engine);
/* By its stack, whether a held thread is in a handler, of which the kernel's frame stands at this address. */
bool engine_is_in_handler(struct engine *engine, struct task *task, raddr at);
/* The ring's memory is the process's no more: nothing comes. */
void engine_ring_end(struct engine *engine);
/* The task, which is held, has forked a process that a tracer of its own is about to be forked for. */
void engine_ring_fork(struct engine *engine, const struct task *task);
/* This tracer was forked for a child of the process, which has its jumps and records nothing so far: the ring is another
 * one's to read, and the child gets one of its own when its thread is held; with sampling its blocks are to be told then
 * (engine_block_known).  0, also when there is none to have; or negative errno. */
void engine_ring_leave(struct engine *engine);
int engine_ring_begin_copy(struct engine *engine, struct task *task, uint64_t size);
/* A new thread, which is held. */
void engine_task_born(struct engine *engine, struct task *task);

/* Parses an object's ELF file and notes what to probe in it.  Stops nothing; call it while nothing is
 * stopped where that is possible.  0 or -ENOMEM; an unreadable object has nothing to probe. */
int engine_plan_module(struct engine *engine, uint32_t module, int elf_fd);
void engine_drop_module(struct engine *engine, uint32_t module);
/* How many functions are planned to be probed. */
unsigned engine_planned(const struct engine *engine);
/* An object whose malloc cannot be probed, and why (static text); false: there is none. */
bool engine_unwatchable(const struct engine *engine, uint32_t *ret_module, const char **ret_reason);

/* When some threads are held already, before it is installed: what has to be known of each is asked of these. */
void engine_look_ahead(struct engine *engine);
/* Prepares breakpoints for all that is planned and not yet prepared, and plants them.  All threads that
 * run must have SIGTRAP unblocked.  Returns how many functions are probed, or negative errno. */
int engine_install(struct engine *engine);

/* Serves a breakpoint: `regs` are the task's at the int3, pc at the int3's address + 1.  The task already
 * stands at the displaced instruction. */
void engine_hit(struct engine *engine, struct task *task, const struct breakpoint *bp,
		const struct user_regs_struct *regs);
/* With a ring: serves the call or return whose record, of this number, a held task stands before and is not going to write; with its
 * registers there. */
void engine_stand_in(struct engine *engine, uint32_t number, const struct user_regs_struct *regs);
/* A signal is about to be delivered to the task, which has not run the instruction at this breakpoint since it was served.
 * True: what was made of it was taken back, and it is to be served anew when the task comes there again. */
bool engine_take_back(struct engine *engine, struct task *task, const struct breakpoint *bp, raddr sp);
/* Whether the task has an allocator call pending. */
bool engine_is_inside(const struct task *task);
/* How many calls of all tasks have not returned: one that was left by a jump is among them until its thread's next
 * call. */
uint32_t engine_pending(const struct engine *engine);
/* A signal is about to be delivered to the task, of which all records have been read; or not all, up to where the ring ends now. */
void engine_signal(struct engine *engine, struct task *task, raddr sp);
void engine_signal_later(struct engine *engine, const struct task *task, raddr sp);
/* So much has been recorded that is not read yet that a thread would be held for long if it waited for that. */
bool engine_is_behind(const struct engine *engine);
void engine_task_gone(struct engine *engine, struct task *task);

struct engine_counters engine_counters(const struct engine *engine);
unsigned engine_probe_count(const struct engine *engine);
/* A text about a function that had to be refused, NULL: none. */
const char *engine_refusal(const struct engine *engine);
size_t engine_memory(const struct engine *engine);

#endif
