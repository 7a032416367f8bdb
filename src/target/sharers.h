/* Other processes that have the target's memory: vfork's children, those of clone(CLONE_VM).  They run into our int3s
 * like its threads.  All processes are looked at before anybody is held, and afterwards those that came since. */
#ifndef ALLOCWATCH_TARGET_SHARERS_H
#define ALLOCWATCH_TARGET_SHARERS_H

#include "target/target.h"

struct sharers {
	VEC_OF(pid_t) found;
	/* Who cannot be asked about, being another user's, and has memory of the same size. */
	VEC_OF(pid_t) suspects;
	pid_t last_pid;                /* the number given last, before the look; 0: not known */
};

/* sharers: zeroed at first, or as the last look left it; to be freed also when this fails.  0 or -ENOMEM. */
int sharers_look(const struct target *target, struct sharers *sharers);
/* The same for who came since the last look. */
int sharers_look_again(const struct target *target, struct sharers *sharers);
/* One that was found may have ended since, or have executed a program. */
bool sharers_has_left(const struct target *target, pid_t pid);
void sharers_fini(struct sharers *sharers);

/* The first of the suspects that really has the same memory, by what an injected call changes; 0: none.  All tasks
 * are held, and the place for calls is there. */
pid_t sharers_prove(struct target *target, const struct sharers *sharers);

#endif
