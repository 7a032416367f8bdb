/* In which order threads are held and go on, where there are many.  Who runs notices a stop, who waits in the kernel does not: so those
 * that run are held last and go on first, and most of what it takes to hold the others, and to let them go, is nothing to them. */
#ifndef ALLOCWATCH_TARGET_ORDER_H
#define ALLOCWATCH_TARGET_ORDER_H

#include "target/target.h"

/* Looks which threads run, or wait for a processor, before any is held: `ran`.  Where they are few, or one is held already, which would
 * have to wait for the looks, all of them do. */
void order_look(struct target *target);

/* Calls `go` for each that is held and has not ended: for those first that ran, or are held outside of a wait, and then for the others;
 * of either for those first that were stopped first.  leader_last: for the process's first thread after all others. */
void order_let_go(struct target *target, bool leader_last, void (*go)(struct task *task));

#endif
