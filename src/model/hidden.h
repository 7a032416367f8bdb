/* Which frames are the allocator's or a language's runtime, and not the user's: the frames between
 * a user's line and the allocator.  Known by the function's name, by the object it is in, or by the
 * source file it comes from (an inlined constructor has no more than a bare name); and by what the user has added,
 * see hidden_rules.h. */
#ifndef ALLOCWATCH_MODEL_HIDDEN_H
#define ALLOCWATCH_MODEL_HIDDEN_H

#include <stdbool.h>

/* A symbol's name or a demangled one; names of templates may have their result in front. */
bool hidden_function(const char *name);
/* The path of an ELF object. */
bool hidden_object(const char *path);
/* The path of a source file. */
bool hidden_file(const char *path);

#endif
