/* What a user adds to the table of frames that are hidden: his own allocators and their wrappers, pools, whatever else
 * only passes a request on.
 *
 * A rule is a pattern of Python's fnmatch:
 *   GLOB, @function=GLOB   a function by its whole name, or by its name alone, without result, parameters and what a
 *                          compiler or a linker puts behind it ("pool::get", "xmalloc" for "xmalloc.part.0")
 *   @object=GLOB           an ELF object, by its path, or without a slash in the pattern by its file name
 *   @file=GLOB             a source file, likewise: all that is inlined from there, too
 *
 * The rules are the process's, as the table is.  They are added before anything is shown, by one thread; from then on they
 * are only read. */
#ifndef ALLOCWATCH_MODEL_HIDDEN_RULES_H
#define ALLOCWATCH_MODEL_HIDDEN_RULES_H

#include <stdbool.h>
#include <stddef.h>

#define HIDDEN_RULES_MAX 256
#define HIDDEN_RULE_LENGTH_MAX 1024

enum hidden_kind { HIDDEN_FUNCTION, HIDDEN_OBJECT, HIDDEN_FILE };

/* 0, or -EINVAL with *ret_reason (static text, a sentence's end: "has no pattern"). */
int hidden_rule_check(const char *text, const char **ret_reason);
/* Adds one, of which a copy is kept; one that is there already is no error.  0, -EINVAL with *ret_reason, -ENOMEM; -E2BIG:
 * there are HIDDEN_RULES_MAX. */
int hidden_rules_add(const char *text, const char **ret_reason);
size_t hidden_rules_count(void);
const char *hidden_rules_text(size_t i);
bool hidden_rules_have(enum hidden_kind kind);
/* Whether a rule of the kind matches this text. */
bool hidden_rules_match(enum hidden_kind kind, const char *text);
/* Forgets all of them. */
void hidden_rules_clear(void);

#endif
