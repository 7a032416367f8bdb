/* A process that is traced without ptrace: `attach --release`.  The ring alone serves it, nothing stops it, and a debugger or strace
 * can be used on it.  To let it go it is seized once more, and for a moment when it has loaded an allocator, so that this gets jumps:
 * the thread that loads it waits for that in the loader's hook.
 *
 * What nobody tells of then is looked for once a second: its end, that it executes another program, threads that ended, and objects that
 * came where the hook has no room.  See doc/ARCHITECTURE.md for what is given up. */
#ifndef ALLOCWATCH_TRACER_RELEASE_H
#define ALLOCWATCH_TRACER_RELEASE_H

#include "tracer/session.h"

/* Why it cannot be (static text, or the session's); NULL: all is in place, and all threads are held. */
const char *release_refusal(const struct session *session);
/* Then: lets them go. */
void release_begin(struct session *session);
/* Forgets the threads that have ended: reads their last records before.  Not while a record is served. */
void release_drop_ended(struct session *session);
/* Takes it back: all threads are held.  0; -EPERM: another tracer has it; -ESRCH: it has ended, or executed another program; or
 * negative errno. */
int release_end(struct session *session);
enum release_state { RELEASE_RUNS, RELEASE_ENDED, RELEASE_EXECUTED };
/* What has become of the process. */
enum release_state release_state(struct session *session);
/* Notes how it ended, where the kernel tells. */
void release_note_status(struct session *session);
/* The loader's list of objects changes, as the ring has recorded it. */
void release_objects_changed(struct session *session);
/* A stop of a thread that could not be held when others were, or of a child of it: lets it go.  False: it is nothing of that. */
bool release_serve_stop(const struct stop *stop);
/* Once a second. */
void release_look(struct session *session);
/* It has ended, or executed another program: its threads are no more. */
void release_forget_threads(struct session *session);

#endif
