#include "model/engine_kind.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

const char *const engine_kinds[] = { [ENGINE_AUTO] = "auto", [ENGINE_INT3] = "int3", [ENGINE_RING] = "ring", NULL };

int engine_kind_by_name(const char *name)
{
	for (int i = 0; engine_kinds[i]; i++) {
		if (strcmp(name, engine_kinds[i]) == 0)
			return i;
	}
	return -EINVAL;
}
