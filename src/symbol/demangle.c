#include "symbol/demangle.h"

#include <libiberty/demangle.h>
#include <stddef.h>
#include <string.h>

bool demangle_wanted(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

char *demangle(const char *name)
{
	if (!demangle_wanted(name) || strnlen(name, DEMANGLE_INPUT_MAX) == DEMANGLE_INPUT_MAX)
		return NULL;
	return cplus_demangle(name, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI);
}
