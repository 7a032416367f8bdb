/* In which order threads are held and go on, where there are many.  Who runs notices a stop, who waits in the kernel does not: so those
 * that run are held last and go on first, and most of what it takes to hold the others, and to let them go, is nothing to them. */
#ifndef ALLOCWATCH_TARGET_ORDER_H
#define ALLOCWATCH_TARGET_ORDER_H

#include "target/target.h"

/* Looks which threads run, or wait for a processor, before any is held: `ran`.  Where they are few, or one is held already or stands at a
 * stop, which would have to wait for the looks, all of them do. */
void order_look(struct target *target);

/* Lets each go that is held and has not ended: those first that ran, or are held outside of a wait, and then the others; of either those
 * first that were stopped first. */
struct order_going {
	bool leader_last;              /* the process's first thread after all others */
	void (*go)(struct task *task); /* it is not `stopped` then */
	/* NULL, or called after each; true: some have been forgotten, or others come. */
	bool (*between)(void *context);
	void *context;
};
void order_let_go(struct target *target, const struct order_going *going);

#endif
