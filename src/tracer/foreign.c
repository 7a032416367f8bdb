#include "tracer/foreign.h"

#include "target/maps.h"

#include <string.h>

const char *foreign_refusal(const struct session *session)
{
	const struct module_map *map = &session->target->modules;

	for (size_t i = 0; i < map->modules.count; i++) {
		if (map->modules.items[i].mapped && strstr(map->modules.items[i].path, "/vgpreload_"))
			return "it runs under valgrind, whose code is not the program's: what calls malloc there is not seen; "
			       "use valgrind's own heap tools (massif, dhat), or run it without valgrind";
	}
	if (strstr(session->exe, "/valgrind/"))
		return "it is valgrind itself, in which the program is only data; run the program without valgrind";
	return NULL;
}

const char *foreign_warning(const struct session *session)
{
	if (session->resumed)
		return "it was traced before, which goes on: what it allocated and freed in between was not seen, so that "
		       "answers are not exact";
	return session->checks_leaks ?
	       "it was built with a sanitizer that looks for leaks, which cannot be done under a tracer: it will be let "
	       "go when it calls exit(), with a last snapshot PID:detach, so that the check can run" : NULL;
}

bool foreign_uprobes(const struct session *session)
{
	struct map_line map;
	struct maps maps;
	bool there = false;

	if (maps_of(session->target, &maps) < 0)
		return false;
	while (!there && maps_next(&maps.cursor, &map))
		there = strcmp(map.path, "[uprobes]") == 0;
	maps_close(&maps);
	return there;
}
