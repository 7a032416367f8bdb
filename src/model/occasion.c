#include "model/occasion.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name, *text;
} occasions[] = {
	{ "exit", "the process ended" },
	{ "exec", "the process executed another program" },
	{ "detach", "the process was let go" },
	{ "lost", "the daemon was gone, and its tracer stored what it knew" },
	{ "watch", "the process was found, or the interval of its rule was over" },
	{ "rss-limit", "its resident memory passed the limit" },
	{ "rss-slope", "its resident memory grew too fast" },
	{ "memory-high", "its cgroup was throttled at memory.high" },
	{ "memory-max", "its cgroup reached memory.max" },
	{ "memory-oom", "its cgroup was out of memory" },
	{ "memory-pressure", "processes waited for memory" },
};

const char *occasion_text(const char *name)
{
	for (size_t i = 0; i < sizeof(occasions) / sizeof(occasions[0]); i++) {
		if (strcmp(occasions[i].name, name) == 0)
			return occasions[i].text;
	}
	return NULL;
}
