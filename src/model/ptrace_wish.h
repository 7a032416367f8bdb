/* Whether a process that is traced by the ring alone stays traced by ptrace: as people write it, in options, files and messages. */
#ifndef ALLOCWATCH_MODEL_PTRACE_WISH_H
#define ALLOCWATCH_MODEL_PTRACE_WISH_H

enum ptrace_wish {
	PTRACE_AUTO,                   /* it is let go where nothing is given up by that */
	PTRACE_HOLD,                   /* it stays */
	PTRACE_RELEASE,                /* it is let go, also where something is given up */
};

/* The names, by their number; ends with NULL. */
extern const char *const ptrace_wishes[];

#endif
