/* What the cases of check_yama consist of. */
#ifndef ALLOCWATCH_TESTS_YAMA_STEPS_H
#define ALLOCWATCH_TESTS_YAMA_STEPS_H

#include "tool.h"

#include <stdbool.h>
#include <sys/types.h>

#define WATCHED "tests/victims/watched"
#define FORKER "tests/victims/forker"
#define WAIT_MS 30000
#define CHILD_GOOD 7

struct subject;

/* What a refusal says in each mode, and what it advises. */
extern const char *const reasons[], *const remedies[];

void set_scope(int scope);

/* The victim (tests/victims/watched) as the user; a wrapper (setpriv, unshare) starts it, or NULL. */
struct subject *start_watched(uid_t uid, const char *const *wrapper);
/* It tells Yama who may trace it; -1: anybody. */
void name_tracer(struct subject *victim, long pid);
/* The user's client with a command, which obeys through it; an option of run, or NULL. */
struct subject *start_by_run(struct tool *tool, const char *option, const char *program);

/* One line with the reason, the remedy behind its semicolon. */
void require_refusal(struct tool_run run, const char *reason, const char *remedy);
/* An attach is refused as the mode demands; the victim is unharmed, and quits. */
void require_refused(struct tool *tool, struct subject *victim, int scope);
/* Untraced and at work, its text as in its files by its own word. */
void require_same_process(struct subject *victim, pid_t pid);

/* Traced already: blocks beside those that are there, a child, another program, blocks and a child again. */
void work(struct tool *tool, struct subject *victim, pid_t pid, long blocks);
/* Attached, worked, left, taken up again, left for good. */
void require_all_but_healing(struct tool *tool, struct subject *victim);
/* All that, and the tracer's death; the victim quits. */
void require_traced(struct tool *tool, struct subject *victim);
void require_healed_when_its_tracer_dies(pid_t pid);
/* Of a pid_t. */
bool is_healed(void *context);
/* A child of the forker is a target of its own, with the parent's blocks, and healed; it ends as untraced. */
void require_followed(struct tool *tool, struct subject *forker);

#endif
