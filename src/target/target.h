/* A traced process: its memory, its mapped objects, its threads, and what we changed in it.
 *
 * Knows nothing of allocators, stacks or clients.  A vanished process or thread is a value (-ESRCH).
 * The fields are for target/ itself; others use the functions. */
#ifndef ALLOCWATCH_TARGET_TARGET_H
#define ALLOCWATCH_TARGET_TARGET_H

#include "arch/arch.h"
#include "base/reader.h"
#include "base/vec.h"
#include "model/module.h"
#include "target/mapped_file.h"
#include "target/stop.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct breakpoint;
struct jump;
struct jump_range;
struct jump_area;
struct resident_area;
struct target;

/* A breakpoint that was served and that the thread was put back to, because a signal came before the displaced
 * instruction ran: the thread meets it once more when the handler has ended. */
struct task_rewind {
	raddr address;                 /* 0: none */
	uint64_t reg[ARCH_DWARF_REGS]; /* as they were, but for the pc */
};

/* Handlers interrupt one another: so many such breakpoints of one thread are kept, the oldest is forgotten. */
#define TASK_REWINDS 4

/* A thread, or a task that only shares the memory (vfork, clone(CLONE_VM)). */
struct task {
	pid_t tid;
	pid_t own_number;              /* what it calls itself: that in the target's own PID namespace; 0: not known */
	struct target *target;
	struct task *hash_next, *own_next;
	struct stop stop;              /* why it is stopped; STOP_NONE with `stopped`: freely held */
	uint64_t running_ns;           /* when it was last known to run */
	bool stopped;
	bool guest;                    /* shares the memory, belongs to another process; let go at exec */
	bool unlisted;                 /* it had ended, or never was, when it was first heard of */
	bool interrupt_due;            /* PTRACE_INTERRUPT sent, its stop not seen yet */
	uint64_t blocked_faults;       /* SIGSEGV and SIGBUS, when its mask was first looked at (faults.h) */
	bool ran;                      /* when all were looked at before they were held, or held outside of a wait (order.h) */
	bool masked;                   /* SIGTRAP was looked at in its mask (cleared if need be) */
	bool sigtrap_was_blocked;
	uint32_t mask_note;            /* where that is noted in the process (masks.h), counted from 1; 0: nowhere */
	bool group_stopped;            /* in PTRACE_LISTEN */
	bool has_gone;                 /* it was detached from, and is about to be forgotten */
	bool mended;                   /* its broken-off call was made one that begins again, with the pc there */
	raddr mended_pc;
	bool regs_known;               /* `regs` are what it has: see task_getregs() */
	bool is_frameless;             /* and with these there is no frame of a signal on its stack */
	bool is_outside;               /* it is in no code of ours, nor comes back to any */
	bool is_looked_at;             /* its stack was, by jumps_look_at_stacks() */
	bool layout_seen;              /* its thread data was, by thread_layout_look_ahead() */
	bool mask_known;               /* `mask` is what it has: see task_getsigmask() */
	uint64_t mask;
	struct user_regs_struct regs;
	struct user_regs_struct broken_off; /* when it was last in a call that restart_syscall(2) went on with */
	void *calls;                   /* the probe's pending calls */
	bool taken_back;               /* the breakpoint that it is put back to is to be served anew */
	raddr pointer;                 /* its thread pointer, as the probe has learned it; 0: not yet */
	uint8_t pointer_tries;         /* in vain, of that */
	raddr before_record, before_record_sp; /* where it stood at its last stop before a record */
	unsigned rewind_count;
	struct task_rewind rewinds[TASK_REWINDS]; /* the youngest last */
};

/* Of the program's first stack, as it is mapped. */
struct stack_bounds {
	raddr start, end;
};

/* Limits, each counted or said when reached. */
#define TASKS_MAX 65536
#define BREAKPOINTS_MAX 16384

#define TARGET_FAULTS 2                /* signals */

struct target {
	pid_t pid;
	pid_t memory_tid;              /* a thread that has the memory: pid, unless the main thread is gone */
	uint64_t start_time;           /* field 22 of /proc/PID/stat: with pid, its identity */
	unsigned namespace_level;      /* how many PID namespaces further in it is than we are */
	int pid_fd;
	int mem_fd;                    /* /proc/PID/mem; read-write where permitted; -1: not permitted */
	bool mem_writable;
	bool filtered;                 /* threads have seccomp filters, which are lifted while we make a call in them */
	bool all_filtered;
	bool undo_due;                 /* no thread could be held to take the handler out: all were in such waits */
	bool left_something, left_in_copy;     /* that a fresh process may be able to take out */
	bool left_filtered;            /* in one with such a filter, it or a copy of it, the handler had to stay */
	int maps_fd;
	struct module_map modules;
	VEC_OF(int) module_fds;        /* by module id; -1: could not be opened */
	struct mapped_files files;     /* that are not simply there */
	VEC_OF(struct module_slack) slacks;
	struct stack_bounds main_stack; /* when all mappings were last looked at; it may have grown since */
	VEC_OF(struct task *) tasks;
	VEC_OF(struct breakpoint *) breakpoints;
	uint64_t text_changes;         /* counts these and the jumps that were ever to be put into code */
	struct task *served;           /* its stop is being looked at: held without being `stopped` */
	struct breakpoint **bp_hash;
	size_t bp_hash_size;
	raddr bp_lowest, bp_highest;   /* of those ever planted */
	struct resident_area *areas;   /* the main one first */
	VEC_OF(struct jump) jumps;     /* of the ring engine, by number: see jumps.h */
	struct jump_area *jump_areas;
	VEC_OF(raddr) code_words;      /* on the stacks that are looked at (is_looked_at), into the code of: */
	VEC_OF(struct jump_range) code_ranges;
	struct jump_pads *jump_pads;   /* see jumps_pads.c */
	raddr ring, ring_size;         /* the ring's mapping; 0: none */
	bool ring_lost;                /* a call for it was not seen to its end: what it has made is found by its name */
	raddr area_lost;               /* likewise where an area of jumps may be mapped; 0: nowhere */
	raddr masks;                   /* the notes of masks.h; 0: none */
	uint32_t mask_count;           /* of them ever used */
	VEC_OF(uint32_t) mask_places;  /* of these, free again */
	bool masks_refused;            /* there could be no mapping for them */
	raddr stub;                    /* where injected system calls are made from */
	pid_t stub_user;               /* a thread that did not come back from there in time; 0: none */
	bool adopted;                  /* the areas are those of a tracer that died */
	bool handler_installed;
	bool handler_lost;             /* the kernel has set the default in its place */
	bool handler_replaced;         /* the program has set one of its own, past the C library */
	bool ask_for_handler;          /* at the next stop that allows it: is it still ours? */
	bool ask_for_faults;           /* what the program does at SIGSEGV and SIGBUS (faults.h): at the next stop that allows it */
	uint64_t fault_handlers[TARGET_FAULTS], reset_faults;
	uint8_t old_action[32];        /* the kernel's struct sigaction of SIGTRAP: the program's own */
	uint64_t longest_stop_ns;      /* of one thread, at once; see held.h */
	uint64_t held_ns;              /* of all threads together, ever */
	uint64_t none_held_ns;         /* then no thread stood still unseen */
	bool gone;                     /* its memory has ended */
	bool was_ours;                 /* it was traced, was let go, and has the memory that it had */
	pid_t stranger;                /* a thread, or who shares the memory, that may not be traced; 0: none */
	/* A child with a copy of the memory is held before its first instruction: true when it was taken over,
	 * false (or NULL): it is cleaned and let go.  Set by the owner. */
	bool (*copy_made)(void *context, struct task *parent, pid_t child);
	/* Told of a task that ended; removes it.  Set by the owner. */
	void (*task_gone)(void *context, struct task *task);
	/* Whether a frame of a signal, which stands at this address, is one of a handler that the task is in, and not a trace of an
	 * earlier one.  NULL: it is taken for one. */
	bool (*is_in_handler)(void *context, struct task *task, raddr at);
	/* Who runs waits for us, or will soon: it is not looked first who does (order.h).  NULL: nobody ever does. */
	bool (*is_awaited)(void *context);
	/* While threads are let go one after the other, what those do that have gone may be due to be served: then these are forgotten, and it
	 * is, for a moment.  NULL: it never is. */
	bool (*free_are_due)(void *context);
	void (*serve_free)(void *context);
	/* When those are held that wait, and those that run are not yet: to find out what will be needed of held ones.  NULL: nothing. */
	void (*some_held)(void *context);
	/* While a task's stop is awaited, which may take its time: must neither stop nor resume any.  NULL: nothing. */
	void (*idle)(void *context);
	void *context;
};

/* Unused bytes behind the end of an executable segment, up to its page's end. */
struct module_slack {
	raddr start, end;
	uint32_t module;
	bool used;
};

/* Opens the process's files while we may; stops nothing.  -ESRCH, -EPERM, -EACCES, -ENOMEM. */
int target_new(pid_t pid, struct target **ret_target);
void target_free(struct target *target);          /* accepts NULL */
/* Bytes of its tables (target/memory.c). */
size_t target_memory(const struct target *target);

/* --- memory (target/mem.c) --- */
int target_read(struct target *target, raddr at, void *buf, size_t len);
/* By every way that there is, our int3s not hidden: an error means that there is no such memory. */
int target_read_surely(struct target *target, raddr at, void *buf, size_t len);
/* Parts of memory by as few system calls as there may be: with many threads it is the calls that take the time.  Each is
 * there whole, and then as target_read() gives it, or its buffer holds nothing. */
struct target_part {
	raddr at;
	void *buf;
	size_t len;
	bool is_there;                 /* the answer */
};
void target_read_parts(struct target *target, struct target_part *parts, size_t count);
/* Needs a stopped task unless mem is writable. */
int target_write(struct target *target, raddr at, const void *data, size_t len);
struct reader target_reader(struct target *target);
/* After exec: the old files are of the old memory.  Where it is Yama alone that lets us not open the memory of what we
 * trace, it is read and written through held threads (-EAGAIN: none is). */
int target_reopen_memory(struct target *target);
/* /proc/PID/mem, for writing where that is permitted; a descriptor or negative errno. */
int target_open_memory(pid_t pid, bool *ret_writable);

/* --- objects (target/modules.c) --- */
/* Executable mappings of one file, and of all, that are looked at; the others are missed (struct mapped_files). */
#define OBJECT_MAPPINGS_MAX 256
#define MAPPINGS_MAX 8192
/* Looks at the mappings and brings modules, module_fds and slacks up to date.  *ret_changed: something
 * came or went; where the kernel can say that nothing did no other mapping is looked at.  New modules are those with ids at
 * or above the count before. */
int target_scan_modules(struct target *target, bool *ret_changed);
void target_forget_modules(struct target *target);      /* exec */
int target_module_fd(const struct target *target, uint32_t module);

/* --- threads (target/task.c) --- */
struct task *task_find(pid_t tid);                /* of any target of this process */
int task_add(struct target *target, pid_t tid, struct task **ret_task);
void task_remove(struct task *task);
/* The registers of a task that stands.  Of one that is held (`stopped`) the kernel is asked once, until it runs or they are
 * changed: all threads are looked at several times while all are held.  0 or negative errno. */
int task_getregs(struct task *task, struct user_regs_struct *ret_regs);
/* Its signal mask, likewise. */
int task_getsigmask(struct task *task, uint64_t *ret_mask);
/* They, and all that was seen of it beside them, are not what they were, or will not be: called by ptrace.c before each request that
 * lets a thread run or changes them. */
void task_forget_regs(pid_t tid);
void task_forget_sigmask(pid_t tid);
void task_forget_seen(struct task *task);
/* The process's first thread, whose number is the process's; NULL: it has ended, or is none of these tasks now. */
struct task *target_first_task(const struct target *target);
/* The one of this target that calls itself so, or NULL. */
struct task *task_find_own(const struct target *target, pid_t own_number);
/* Makes known all threads of it that there are: where nobody tells of births.  Traces none.  0, -ESRCH, or what looking gave. */
int target_note_threads(struct target *target);
/* It does not call itself by the number that the kernel has for it: a child that no C library has told of that.  A number is of
 * one: it goes on with the pending calls of who had it, and has ended. */
void task_set_own_number(struct task *task, pid_t own_number);
/* Any that is no guest?  Without one the process has ended, or left its memory to the guests. */
bool target_has_own_tasks(const struct target *target);
/* Any that is one? */
bool target_has_guests(const struct target *target);
/* Any task of the target that is held in a stop, or NULL. */
struct task *target_stopped_task(const struct target *target);

#endif
