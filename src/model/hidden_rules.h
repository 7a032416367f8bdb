/* What a user adds to the table of frames that are hidden: his own allocators and their wrappers, pools, whatever else
 * only passes a request on.
 *
 * A rule is a pattern of Python's fnmatch:
 *   GLOB, @function=GLOB   a function by its whole name, or by its name alone, without result, parameters and what a
 *                          compiler or a linker puts behind it ("pool::get", "xmalloc" for "xmalloc.part.0")
 *   @object=GLOB           an ELF object, by its path, or without a slash in the pattern by its file name
 *   @file=GLOB             a source file, likewise: all that is inlined from there, too
 *
 * The rules are the process's, as the table is.  They are added before anything is shown, by one thread; from then on a
 * set is only read, and another one may take its place.  That one thread puts it there and counts references; what it has
 * another one do is done with the set of that moment, so that an answer is all of one set. */
#ifndef ALLOCWATCH_MODEL_HIDDEN_RULES_H
#define ALLOCWATCH_MODEL_HIDDEN_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HIDDEN_RULES_MAX 256
#define HIDDEN_RULE_LENGTH_MAX 1024

struct hidden_rules;

enum hidden_kind { HIDDEN_FUNCTION, HIDDEN_OBJECT, HIDDEN_FILE };

/* 0, or -EINVAL with *ret_reason (static text, a sentence's end: "has no pattern"). */
int hidden_rule_check(const char *text, const char **ret_reason);
/* Adds one, of which a copy is kept; one that is there already is no error.  0, -EINVAL with *ret_reason, -ENOMEM; -E2BIG:
 * there are HIDDEN_RULES_MAX. */
int hidden_rules_add(const char *text, const char **ret_reason);

/* A set that is not in force yet, with one reference; NULL: no memory. */
struct hidden_rules *hidden_rules_new(void);
/* One more reference to the set that is in force. */
struct hidden_rules *hidden_rules_ref(void);
void hidden_rules_unref(struct hidden_rules *rules);           /* accepts NULL */
/* As hidden_rules_add(). */
int hidden_rules_add_to(struct hidden_rules *rules, const char *text, const char **ret_reason);
/* Takes the reference over. */
void hidden_rules_put_in_force(struct hidden_rules *rules);
/* This thread sees that set from now on, to which there is a reference; NULL: the one that is in force. */
void hidden_rules_see(const struct hidden_rules *rules);
/* Of the set that this thread sees: no other set has it. */
uint64_t hidden_rules_number(void);

size_t hidden_rules_count(void);
const char *hidden_rules_text(size_t i);
bool hidden_rules_have(enum hidden_kind kind);
/* Whether a rule of the kind matches this text. */
bool hidden_rules_match(enum hidden_kind kind, const char *text);
/* Forgets all of those in force, which nobody holds. */
void hidden_rules_clear(void);

#endif
