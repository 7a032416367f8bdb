/* The typed errors of org.allocwatch.Tracer.  Each ends the call.  Messages are for a person: one line
 * without a full stop that says why, on what, and what to do; the client knows what it wanted. */
#ifndef ALLOCWATCH_DAEMON_FAILURES_H
#define ALLOCWATCH_DAEMON_FAILURES_H

#include "daemon/call.h"
#include "daemon/session.h"

#define FAIL_FORMAT(n) __attribute__((format(printf, n, (n) + 1)))

void fail_invalid_parameter(struct call *call, const char *parameter);
void fail_no_such_process(struct call *call, int pid, const char *format, ...) FAIL_FORMAT(3);
void fail_not_traced(struct call *call, int pid, const char *format, ...) FAIL_FORMAT(3);
void fail_already_traced(struct call *call, int pid, const char *format, ...) FAIL_FORMAT(3);
void fail_no_such_snapshot(struct call *call, const char *snapshot, const char *format, ...) FAIL_FORMAT(3);
void fail_limit(struct call *call, const char *limit, const char *format, ...) FAIL_FORMAT(3);
void fail_unsupported(struct call *call, const char *format, ...) FAIL_FORMAT(2);
void fail_query(struct call *call, const char *format, ...) FAIL_FORMAT(2);
void fail(struct call *call, const char *format, ...) FAIL_FORMAT(2);
/* tracer_pid: who traces it already, or 0. */
void fail_not_permitted(struct call *call, int pid, const char *reason, const char *remedy, int tracer_pid);
void fail_memory(struct call *call);
/* What a session's answer other than success means. */
void fail_answer(struct call *call, int pid, const struct answer *answer);
/* A process that was traced to its end: how it ended, and what its last snapshot is called. */
void fail_ended(struct call *call, int pid);
/* Nothing can be asked about it: session NULL, or of a state that cannot answer. */
struct session;
void fail_no_session(struct call *call, int pid, const struct session *session);

#endif
