/* A process that is traced without ptrace, as all are for which nothing speaks against it (hold.h), or where `attach --release`
 * asks for it.  The ring alone serves it, nothing stops it, and a debugger or strace can be used on it.  To let it go it is seized
 * once more, and for a moment when it has loaded an allocator, so that this gets jumps: the thread that loads it waits for that in
 * the loader's hook.
 *
 * A thread that executes a program waits likewise until the process is seized for that.
 *
 * A handler of a signal that has come in the midst of a record is put out of it likewise, when it does not end soon.
 *
 * What nobody tells of then is looked for: its end, that it has executed another program unseen, and once a second threads that ended, and
 * objects that came where the hook has no room.  See doc/ARCHITECTURE.md for what is given up. */
#ifndef ALLOCWATCH_TRACER_RELEASE_H
#define ALLOCWATCH_TRACER_RELEASE_H

#include "tracer/hold.h"
#include "tracer/session.h"

#include "target/awaited.h"

/* Why it cannot be, up to HOLD_LAST_REFUSAL; HOLD_NOT: all is in place, and all threads are held. */
enum hold_reason release_refusal(const struct session *session);
/* What the user wants, of an attach: sets `hold` and `alone`. */
void release_take_wish(struct session *session, const struct wire_attach *request);
/* Why it stays, as far as that is known before anything is planned; from then on `may_release` says whether to ask. */
enum hold_reason release_known_hold(const struct session *session);
/* The same when all is planned and nothing planted; where it stays another engine is planned.  0 or negative errno. */
int release_look_at_plan(struct session *session);
/* All threads are held, and all is planted as for a process that is let go: whether it is, or is planted anew as one that stays.  `hold`
 * and `alone` say which.  0 or negative errno. */
int release_decide(struct session *session);
/* Then: lets them go. */
void release_begin(struct session *session);
/* That it is traced, to be said each second. */
void release_renew(struct session *session);
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
/* The loader's list of objects changes, as the ring has recorded it.  True: an allocator came; who has loaded it waits, and
 * release_watch_objects() is due. */
bool release_objects_changed(struct session *session);
/* Has it watched, and lets those go on.  True: all are held now. */
bool release_watch_objects(struct session *session);
/* A stop of a thread that could not be held when others were, or of a child of it: lets it go.  False: it is nothing of that. */
bool release_serve_stop(const struct stop *stop);
/* Once a second.  True: all are held now. */
bool release_look(struct session *session);
/* It has ended, or executed another program: its threads are no more. */
void release_forget_threads(struct session *session);

/* --- release_settle.c: records that stay open --- */

/* Seizes it, so that handlers that have come in the midst of records go on before them, and what was left half-written is no record: nobody
 * writes what was reserved by then, and nothing is lost by that.  It is let go again unless it is to be held, or has just executed a program:
 * *ret_held.  0; -EAGAIN: that cannot be said of all, who are not held; -EPERM: another tracer has it; or negative errno.  (release.c's.) */
int release_settle(struct session *session, bool hold, bool *ret_held);

/* More often than so many times a second, or for more than this part of the time, for so many seconds: then it is held for good. */
#define SETTLINGS_A_SECOND 10
#define SETTLINGS_SHARE 10
#define SETTLINGS_SECONDS 3
/* Of the next record to be read, which is under way.  All 0 at first. */
struct settling {
	struct awaited writer;
	uint64_t position;             /* which it is */
	uint64_t again_ns, pause_ns;   /* it was tried in vain: when that is done once more, also for the next record, and how long after that */
	uint64_t second_ns, took_ns;   /* when a second began, how long it took in that, */
	unsigned count, busy;          /* how often it was done, and for how many seconds before it too much */
};
enum settled { SETTLED_NOT, SETTLED, SETTLED_AND_HELD };
/* It is under way, by `writer` where that is known (0: not): settles it when it has been for a moment in which whoever writes it could have
 * gone on. */
enum settled release_settle_in_time(struct session *session, struct settling *settling, pid_t writer);
/* It was read, or is given up. */
void release_settling_end(struct settling *settling);

/* --- release_exec.c: programs that it executes --- */

/* What the ring has recorded of who is about to execute one, by this function and with these arguments.  True: it waits, and
 * release_seize_for_exec() is due; or, where it was seized before and the program gains rights, release_for_rights(). */
bool release_wants_exec(struct session *session, pid_t tid, raddr function, const uint64_t args[3]);
/* Seizes it, so that the exec is seen; whoever waits for that goes on.  As release_end(). */
int release_seize_for_exec(struct session *session);
/* Lets it go before that.  False: it has just executed a program. */
bool release_for_rights(struct session *session);
/* It is seized and stays so: who waits to execute a program is let go, which is an event now. */
void release_let_waiting_go(struct session *session);
/* Lets one go again that was seized for another reason.  False: it is about to execute a program, or has done so, and stays seized for that. */
bool release_unless_exec(struct session *session);
/* Whether one that was seized for that has not executed anything in time: release_again() is due. */
bool release_exec_failed(const struct session *session);
/* Lets it go again.  False: it has just executed a program. */
bool release_again(struct session *session);
/* It has executed one unseen: attaches to that as it is, with a heap of its own that begins now.  All its threads are held then.  0;
 * -ECANCELED: it is not to be traced; or negative errno, and nothing of ours is in it. */
int release_attach_anew(struct session *session);
/* One was seen being executed, and its loader tells of what it has loaded: when it has come so far that it can do without ptrace it is let
 * go; true: it was.  False: not yet, or it never can, which was told. */
bool release_begin_program(struct session *session);
/* It stays with ptrace, which plans anew all that is in it; all its threads are held.  0 or negative errno. */
int release_refrain(struct session *session);
/* Lets go what was not to be: release.c's, with what its threads have pending. */
void release_let_go_again(struct session *session);

#endif
