/* What a function and an object are called beside what changes from build to build: pure text. */
#ifndef ALLOCWATCH_MODEL_DEFINITION_H
#define ALLOCWATCH_MODEL_DEFINITION_H

#include <stddef.h>

/* How much of a function's name is its own: compilers append a part's or a clone's number, as in "f.constprop.0",
 * "f.cold" or, of a demangled one, "f(int) [clone .isra.0]". */
size_t definition_function_length(const char *name);

/* The name of an object's file without its folders and without what follows ".so", a library's version; *ret_len bytes
 * of `path`. */
const char *definition_object_name(const char *path, size_t *ret_len);

/* The last part of a path. */
const char *definition_base_name(const char *path);

/* How alike the folders of two paths are; the last parts do not count.  Folders in common from the end count more than
 * any number of folders in common from the beginning. */
unsigned definition_likeness(const char *a, const char *b);

#endif
