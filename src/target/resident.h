/* Our code inside the target: the SIGTRAP handler that keeps it alive when nobody traces, the displaced
 * instructions, and a place to make a system call from.
 *
 * It lies in areas: unused bytes behind the text of objects (slack), else injected R-X mappings, each within
 * reach of the instructions whose copies it holds.  The first area is the main one, with the handler. */
#ifndef ALLOCWATCH_TARGET_RESIDENT_H
#define ALLOCWATCH_TARGET_RESIDENT_H

#include "target/bp.h"
#include "target/target.h"

/* Lays out the main area in the biggest slack and writes the handler; not installed yet.  Needs a stopped
 * task.  -ENOSPC: no room anywhere. */
int resident_prepare(struct target *target);
/* Makes the handler the process's disposition for SIGTRAP, by a system call of a held task.  -EAGAIN: none of its
 * tasks can make one now. */
int resident_install_handler(struct target *target);
/* Gives the program its own one back, with the handler's code still in place: no int3 stands.  0, -EAGAIN as above, or negative errno. */
int resident_return_handler(struct target *target);

/* Writes the displaced copy of a breakpoint's instruction and its entry in the handler's table. */
int resident_add_slot(struct target *target, struct breakpoint *bp, const char **ret_reason);
void resident_drop_slot(struct target *target, struct breakpoint *bp);

/* Room for a stub with that much data at the end of the executable mapping that holds `near`, in a process of which
 * nothing is known yet; 0, or -ENOSPC. */
int resident_find_room(pid_t pid, raddr near, size_t data_len, raddr *ret_at);

/* The place in the text that a pc in the resident code stands for; other pcs come back as they are. */
raddr resident_resume(const struct target *target, raddr pc);
bool resident_contains(const struct target *target, raddr pc);
/* For the unwinder: of registers in code of ours, those of the place in the text that they stand for; context is a struct target. */
void resident_translate(void *context, struct arch_regs *regs, const struct reader *stack);

/* Where the process has unmapped the object that our calls of it were made from, they are made from another from now
 * on.  Before the first of those that take something out.  0, or -ENOSPC: there is no room. */
int resident_keep_stub(struct target *target);
/* Restores SIGTRAP's old disposition and takes all resident code out again.  All tasks are held and
 * outside of it.  0, or negative errno when something had to stay. */
int resident_remove(struct target *target);
/* The same in a forked copy of the process, `task` being its only one.  bp_restore_copy puts the original
 * bytes back there and returns how many it could not: then the handler must stay.  Neither changes what is known of the
 * original. */
int resident_remove_copy(struct target *copy, struct task *task);
unsigned bp_restore_copy(struct target *copy);
/* An object was unloaded, and its slack with it. */
void resident_drop_module(struct target *target, uint32_t module);
/* The memory is gone. */
void resident_forget(struct target *target);

/* Where the main area's header has its note. */
raddr resident_note(const struct target *target);
/* Notes a time up to which the process is traced without ptrace, by this process, which is to renew it; 0: it is not. */
int resident_note_traced(struct target *target, uint64_t until_ns);
/* The main area that a tracer has left which died, by its magic; 0: none.  The modules were scanned. */
raddr resident_find(struct target *target);
/* At a glance, without parsing: whether it is worth a look. */
bool resident_is_left(pid_t pid);
/* Whether the process of that area is on its way from one tracer to another (park.h), or traced without ptrace. */
bool resident_is_parked(struct target *target, raddr start);
/* Until when, on the monotonic clock, in nanoseconds; 0: it is not, or was by a tracer that is dead.  A time that has passed: who
 * traces it is late to renew that. */
uint64_t resident_parked_until(struct target *target, raddr start);
/* Takes that over, as if this process had put it there: breakpoints, areas, the old action.  Nothing is changed
 * in the target.  0; -ENODATA: neither is the file of an object to be had, nor was its text noted; -ENOENT, -EBADMSG:
 * what stands there is not what this version leaves. */
int resident_adopt(struct target *target, raddr start);

/* Whether the handler still is the disposition and `task` lets SIGTRAP through, else why not. */
bool resident_is_safe(struct target *target, const char **ret_reason);

#endif
