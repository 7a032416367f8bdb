/* Executing a program once more.
 *
 * The kernel gives a set-id program, or one with capabilities, no rights in a process that is traced by somebody with
 * less, and says nothing of it.  At the event of the exec not one instruction of the program has run: the task is made
 * to execute it again, by a stub in unused bytes of the new memory and with the arguments and environment that lie on
 * its new stack, when its tracer has let it go. */
#ifndef ALLOCWATCH_TARGET_AGAIN_H
#define ALLOCWATCH_TARGET_AGAIN_H

#include "base/reader.h"

#include <stddef.h>
#include <sys/types.h>

struct again {
	raddr argv, envp;
	raddr name;                    /* where its name lies, as it was executed */
};

/* Of a task at the event of an exec: what lies on its stack.  0 or negative errno. */
int again_look(pid_t tid, struct again *ret_again);
/* The name itself; -ENAMETOOLONG. */
int again_name(pid_t tid, const struct again *again, char *name, size_t space);
/* The task will execute the program as soon as it is let go: by this path, or by the name on its stack when that is
 * NULL.  Should that fail it begins the program as it is.  0; -ENOSPC: no room for the stub. */
int again_prepare(pid_t tid, const struct again *again, const char *path);

#endif
