#include "model/snapshot_name.h"

#include "model/occasion.h"

#include <stddef.h>
#include <string.h>

bool snapshot_name_is_valid(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= SNAPSHOT_NAME_MAX && strspn(name, SNAPSHOT_NAME_CHARACTERS) == len;
}

bool snapshot_name_may_be_given(const char *name)
{
	return snapshot_name_is_valid(name) && !occasion_text(name);
}
