/* Healing: taking out of a process what a tracer has left there that died.
 *
 * The process lives on with it, through the resident handler, at two microseconds a call.  It is found by the
 * magic of the resident code, in the process itself and in every copy that fork has made of it since. */
#ifndef ALLOCWATCH_TRACER_HEAL_H
#define ALLOCWATCH_TRACER_HEAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HEAL_TEXT_MAX 640
#define HEAL_STANDS_BY "aw-stands-by"     /* /proc/PID/comm */

enum heal_result {
	HEAL_NOTHING,              /* nothing of ours is there, or somebody traces it, or it has ended */
	HEAL_DONE,
	HEAL_FAILED,
};

/* start_time: 0, or field 22 of /proc/PID/stat of the process that is meant.  text says in one line what was
 * done or why not. */
enum heal_result heal_process(pid_t pid, uint64_t start_time, char text[HEAL_TEXT_MAX]);

/* The command line's form: argument NULL: every process that can be looked at; a PID: that one and all that
 * run the same program.  Prints a line for each that it heals, on stderr; the exit status. */
int heal_main(const char *argument);
/* Waits for a WIRE_HEAL on a socket, which is borrowed, and does it; the exit status.  The end of the daemon is one, too.
 * option: "--stand-by" on the command line, which is changed to "--heal" then. */
int heal_stand_by(int sock, char *option);
/* The same where a tracer is a service, which has no command line of its own.  Whether the first word on the socket is
 * WIRE_STAND_BY; the message stays there, and so does any other. */
bool heal_is_to_stand_by(int sock);
/* Says so by a heartbeat and the name HEAL_STANDS_BY, waits, answers WIRE_HEAL; the exit status. */
int heal_serve(int sock);

/* Whether process `pid` heals, whoever has started it: it lets go in a moment what it traces. */
bool heal_is_done_by(pid_t pid);

#endif
