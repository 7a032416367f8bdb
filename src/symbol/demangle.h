/* C++ and Rust names in the form people write them. */
#ifndef ALLOCWATCH_SYMBOL_DEMANGLE_H
#define ALLOCWATCH_SYMBOL_DEMANGLE_H

#include <stdbool.h>

/* A longer mangled name is left as it is: the demangler's work can grow exponentially with it. */
#define DEMANGLE_INPUT_MAX 16384

/* Whether a name looks mangled at all. */
bool demangle_wanted(const char *name);
/* The demangled name, to be freed by the caller; NULL when it is none. */
char *demangle(const char *name);

#endif
