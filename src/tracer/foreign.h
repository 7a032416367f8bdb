/* Programs and tools that get in one another's way with a tracer: runtimes whose leak check refuses to run under
 * one, valgrind, uprobes. */
#ifndef ALLOCWATCH_TRACER_FOREIGN_H
#define ALLOCWATCH_TRACER_FOREIGN_H

#include "tracer/session.h"

/* Why the process cannot be traced at all (static text), or NULL. */
const char *foreign_refusal(const struct session *session);
/* What its user should know of it beforehand (static text), or NULL. */
const char *foreign_warning(const struct session *session);
/* Whether uprobes are at work in it, or have been: the kernel has mapped its page for them. */
bool foreign_uprobes(const struct session *session);

#endif
