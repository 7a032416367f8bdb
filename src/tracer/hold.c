#include "tracer/hold.h"

#include "tracer/session.h"

static const char *const texts[HOLD_COUNT] = {
	[HOLD_FORKS] = "forks are followed",
	[HOLD_MAPPINGS] = "mmap and its like are watched, which int3 alone sees",
	[HOLD_OPERATORS] = "what new has made is told apart, and the stacks that this takes at a delete come with int3 alone",
	[HOLD_MEMORY] = "its memory cannot be read without ptrace",
	[HOLD_WAITS] = "a thread of it is in a wait that nothing breaks off (in vfork, or for a disk)",
	[HOLD_ASKED] = "it was asked for (--hold, or Ptrace=hold)",
	[HOLD_PLACES] = "functions of an allocator have no room for a jump",
	[HOLD_LOADER] = "there is no room for a jump where its loader tells of objects, or it has no such place",
	[HOLD_EXEC] = "there is no room for a jump where it executes programs or forks",
	[HOLD_FILTER] = "it has a system call filter",
	[HOLD_SHARED] = "another process has the same memory",
	[HOLD_SIGNALS] = "signals come too often",
};

const char *hold_text(const struct session *session, enum hold_reason reason)
{
	if (reason == HOLD_ENGINE && !session->wants_ring)
		return "int3 was asked for, which stops it by ptrace";
	if (reason == HOLD_ENGINE)
		return session_engine_reason(session) ? session_engine_reason(session) : "no ring serves it";
	return texts[reason];
}

bool hold_was_asked_for(const struct session *session)
{
	return session->hold == HOLD_ASKED || (session->hold == HOLD_ENGINE && !session->wants_ring);
}
