/* The text of /proc/PID/maps, of which a process chooses the paths. */
#include "fuzz.h"
#include "tracer.h"

#include "target/maps.h"

#include <string.h>

void fuzz_maps_run(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1), *cursor = text;
	struct map_line map;
	size_t lines = 0;

	MUST(text);
	memcpy(text, data, len);
	text[len] = '\0';
	while (maps_next(&cursor, &map)) {
		fuzz_reached(0);
		MUST(map.start < map.end && cursor >= text && cursor <= text + len);
		MUST(map.path >= text && map.path + strlen(map.path) <= text + len);
		MUST(!strchr(map.path, '\n'));
		if (map.inode != 0 && map.path[0] == '/')
			fuzz_reached(1);
		MUST(++lines <= len);
	}
	MUST(*cursor == '\0');
	free(text);
}
