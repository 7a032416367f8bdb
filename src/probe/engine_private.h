/* The engines' parts: engine_sites.c (where breakpoints and jumps stand), engine_int3.c (who stops there), engine_ring.c (who was
 * recorded there), engine_ring_record.c (what a record says), engine_ring_ahead.c (who helps to read), engine_ring_held.c (who is held there), engine_ring_copy.c (in a
 * child), engine_ring_sampling.c (what samples take), engine_ring_settle.c (who is in the midst of a record), engine_ring_stacks.c (whose
 * stacks can be read), engine_loader.c (what it loads), serve.c (what that means). */
#ifndef ALLOCWATCH_PROBE_ENGINE_PRIVATE_H
#define ALLOCWATCH_PROBE_ENGINE_PRIVATE_H

#include "probe/engine.h"
#include "probe/forms.h"
#include "probe/plan.h"
#include "probe/probe.h"
#include "probe/ring_ahead.h"
#include "probe/ring_pressure.h"
#include "probe/tick_clock.h"

#include "ring/ring.h"
#include "target/jumps.h"
#include "target/layout.h"

/* What stands behind one breakpoint. */
struct site {
	unsigned kinds;                    /* enum site_kind */
	struct probe *probe;               /* of an entry */
	uint32_t sp_below;                 /* there: how much lower the stack pointer is than at the function's start */
};

struct planned_module {
	uint32_t module;
	bool installed;
	struct plan plan;
};

/* Without ptrace nobody tells of threads but their records, which may come when the thread has ended, and may be forged: so many
 * that are in no list of the kernel's have their calls kept at a time.  What further ones record is lost, and counted. */
#define RING_UNLISTED_MAX 1024

#define RING_ARGS 3                        /* that a call's record has */

/* As its own words tell of one. */
struct ring_thread {
	raddr pointer;
	uint32_t own_number;
};

/* A signal that was delivered before all that its thread had recorded was read. */
struct ring_signal {
	uint64_t position;                 /* where the ring ended */
	pid_t tid;
	raddr sp;
};

/* What stands behind one jump. */
struct ring_place {
	unsigned kinds;                    /* enum site_kind */
	struct probe *probe;               /* of an entry */
	raddr address;                     /* of the instruction that is watched; of an entry, of the function */
	uint32_t sp_below;                 /* of an entry, where its record is written */
	enum ring_unmaps unmaps;           /* of SITE_UNMAP */
};

#define RING_NO_HOOK UINT32_MAX

struct ring_side {
	bool wanted, begun;
	bool planting;                     /* jumps may be prepared: all threads are held */
	struct ring_options options;
	struct tick_clock clock;           /* of the records' ticks */
	uint64_t now_ns;                   /* when a clock was looked at last */
	size_t filter_looks;               /* threads that were asked for a filter */
	uint64_t wait_ticks;
	struct ring *ring;                 /* NULL: there is none (yet) */
	struct ring_ahead *ahead;          /* who helps to read it; NULL: nobody has yet */
	unsigned most_helpers;
	struct ring_pressure pressure;
	struct ring *parents;              /* of the process that this one was forked from: not read */
	struct ring_drawn forking;         /* with sampling: of the thread that has forked last */
	struct thread_layout layout;
	struct layout_look *layout_look;   /* begun, of those that were held first */
	struct jump_words awaited;         /* while it is planted */
	struct jump_range expected;        /* is asked for behind that, in the same stop */
	VEC_OF(struct ring_place) places;  /* by number */
	VEC_OF(struct ring_signal) signals;        /* that the reader has not come to, in their order */
	uint64_t late;                     /* position of a record that was awaited in vain; UINT64_MAX: none */
	bool outgrown;                     /* the first thread was below what is known to be mapped of its stack, */
	bool below_is_anothers;            /* which has not grown, when that was last looked at */
	size_t unmaps;                     /* places at functions that unmap */
	bool calls_alone;                  /* are read: not what somebody waits for */
	bool looks_due;                    /* for holes in these */
	VEC_OF(struct ring_thread) unseen_stacks;
	size_t hole_looks;                 /* threads whose stacks were looked at for holes */
	uint64_t next_look_ns;             /* not before, for those */
	uint32_t hook;                     /* number of the loader's place; RING_NO_HOOK: it has none */
	uint64_t hook_position;            /* of its record that is being served, or was last */
	uint64_t hook_waits_from;          /* of the first that waits for the sink; UINT64_MAX: none */
	uint64_t waits_position;           /* of the last record that is served with those of who waits for the sink */
	bool waits;                        /* somebody does */
	size_t execs;                      /* places where a program is executed */
	bool passed;                       /* a record whose writer may yet write it, */
	uint64_t passed_thread;            /* which is this one's; 0: whose is not known, or several's */
	bool stall_counted;                /* of the ring that is stalled now a loss has been counted */
	bool change_missed;                /* it may have been there without a record */
	char refusal[160];
	size_t by_int3;                    /* places beside the ring that have a breakpoint, or nothing where it is alone */
	char int3_reason[160];             /* of one of them */
};

struct engine {
	struct target *target;
	struct unwinder *unwinder;
	struct engine_sink sink;
	struct reader reader;
	uint32_t max_frames;
	struct described *described;
	uint32_t blurred;                  /* forms of functions that are several in one: what they make cannot be told apart */
	struct forms forms;
	VEC_OF(struct planned_module *) plans;
	VEC_OF(struct probe *) probes;
	struct engine_counters counters;
	char refusal[256];
	struct ring_side ring;
};

/* The thread's pending calls, made when it has none yet; NULL: no memory. */
struct calls *engine_task_calls(struct task *task);

/* Before what is planned is installed.  Jumps are for it when all threads are held, and the process has come so far that they
 * can be told apart. */
void engine_ring_begin(struct engine *engine);
/* False: a breakpoint is to serve there. */
bool engine_ring_place(struct engine *engine, const struct plan_site *site, uint32_t module, raddr bias, struct probe *probe);
int engine_ring_plant(struct engine *engine);
/* Serves a record of the loader's, and lets its writer go on; and after a writer has waited in vain, the next one waits again. */
void engine_loader_called(struct engine *engine, uint64_t position);
void engine_loader_waits_again(struct engine *engine);
/* Serves a record of who executes a program, and lets its writer go on unless the sink wants it to wait. */
void engine_exec_called(struct engine *engine, const struct ring_record *record, const struct ring_place *place);
/* What an entry's site, or else the ring, is to tell of its call. */
void engine_ring_tell_arguments(const struct engine *engine, const struct catalog_entry *entry, struct ring_window *window);
void engine_ring_tell_shape(struct engine *engine, const struct catalog_entry *entry, uint32_t number);
/* Of the ring's: that of a domain, and how many there are. */
uint32_t engine_ring_family(const struct engine *engine, uint32_t domain);
uint32_t engine_ring_families(const struct engine *engine);
/* How many helpers there may be, before the ring is begun; begins and ends them, after each reading, and ends them with the ring. */
void engine_ring_want_helpers(struct engine *engine);
void engine_ring_look_after_helpers(struct engine *engine, bool has_read);
void engine_ring_end_helpers(struct engine *engine);
/* Maps a ring, turned off.  0 or negative errno. */
int engine_ring_make(struct engine *engine);
/* Where stacks are certainly mapped, as it is known now. */
void engine_ring_publish_stacks(struct engine *engine);
/* All threads are held: their stacks are to be looked at for holes, which is done when they go on (engine_look_at_noted_stacks()).  The
 * code in the process asks the kernel for what it copies until then. */
void engine_ring_note_stacks(struct engine *engine);
/* Where nobody tells of births: a record says where the thread's pointer may be. */
void engine_ring_hear_of_pointer(struct engine *engine, struct task *task, raddr pointer);
/* Has the code see what an object's functions unmap of stacks; where there is no room for that they go unseen.  And what one of them,
 * at whose place (by number) a held task stands with these registers, is about to unmap. */
void engine_ring_watch_unmaps(struct engine *engine, const struct planned_module *planned);
void engine_ring_see_unmap(struct engine *engine, uint32_t number, const struct user_regs_struct *regs);
/* The program's first stack may have grown since its borders were looked at. */
void engine_ring_look_whether_grown(struct engine *engine);
/* The thread that has written a record, made known where nobody else tells of threads; NULL: there is none. */
struct task *engine_ring_writer(const struct engine *engine, uint64_t thread);
/* It has ended, and will not finish its record. */
bool engine_ring_writer_is_gone(const struct engine *engine, uint64_t thread);
/* The thread that says this of itself in a record, 0: there is none; and what a thread says. */
pid_t engine_ring_tid(const struct engine *engine, uint64_t thread);
uint64_t engine_ring_word(const struct task *task);
/* It serves, or may yet. */
bool engine_ring_is_open(const struct engine *engine);
/* An allocating call that int3s saw is pending, or has returned; and of this thread none is any more. */
void engine_ring_note(struct engine *engine, const struct task *task, raddr sp, bool pending);
void engine_ring_forget(struct engine *engine, const struct task *task);
/* Those of the signals told by engine_signal_later() that the reader has come to; and no more of this thread. */
void engine_ring_serve_signals(struct engine *engine);
void engine_ring_forget_signals(struct engine *engine, const struct task *task);
void engine_ring_free(struct engine *engine);

#endif
