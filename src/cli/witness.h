/* A process beside us in our process group, that does nothing but look which signals come to it: what came to it,
 * too, was sent to the whole group (by a shell's kill %1, by the terminal); what came to us alone was meant for the
 * command.  The kernel tells us only who sent a signal, not to how many. */
#ifndef ALLOCWATCH_CLI_WITNESS_H
#define ALLOCWATCH_CLI_WITNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct witness {
	pid_t pid;
	int sock;               /* -1: there is none */
	uint64_t doubtful;      /* signals: one more of each was pending here when the last was told of */
};

/* With the signals that are of interest blocked: the witness is younger than this process, so in a group it is
 * always served first.  0 or negative errno. */
int witness_start(struct witness *witness);
/* Did a signal that was taken here come to the witness as well?  Each of its counts once.  False, too, when it does not
 * answer. */
bool witness_saw(struct witness *witness, int sig);
/* One that was pending in another process of the group when the witness was already there. */
void witness_note(struct witness *witness, int sig);
/* One that will not be taken here, unless it is still pending. */
void witness_forget(struct witness *witness, int sig);
bool witness_is_there(const struct witness *witness);
void witness_end(struct witness *witness);

#endif
