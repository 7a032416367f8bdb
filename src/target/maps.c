#include "target/maps.h"

#include "target/target.h"

#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool take_hex(char **p, char until, uint64_t *ret_value)
{
	char *end;

	if (**p == '-' || **p == '+' || **p == ' ')
		return false;
	*ret_value = strtoull(*p, &end, 16);
	if (end == *p || *end != until)
		return false;
	*p = end + 1;
	return true;
}

static bool parse(char *line, struct map_line *ret)
{
	static const char deleted[] = " (deleted)";
	uint64_t major_number, minor_number;
	struct map_line map = { 0 };
	size_t len;
	char *p = line, *end;

	if (!take_hex(&p, '-', &map.start) || !take_hex(&p, ' ', &map.end) || strnlen(p, 5) < 5 || p[4] != ' ')
		return false;
	map.readable = p[0] == 'r';
	map.writable = p[1] == 'w';
	map.executable = p[2] == 'x';
	map.shared = p[3] == 's';
	p += 5;
	if (!take_hex(&p, ' ', &map.offset) || !take_hex(&p, ':', &major_number) ||
	    !take_hex(&p, ' ', &minor_number))
		return false;
	map.device = makedev((unsigned)major_number, (unsigned)minor_number);
	map.inode = strtoull(p, &end, 10);
	if (end == p)
		return false;
	map.path = end + strspn(end, " ");
	len = strlen(map.path);
	if (len > sizeof(deleted) - 1 && strcmp(map.path + len - (sizeof(deleted) - 1), deleted) == 0) {
		map.path[len - (sizeof(deleted) - 1)] = '\0';
		map.deleted = true;
	}
	*ret = map;
	return map.start < map.end;
}

bool maps_next(char **cursor, struct map_line *ret_line)
{
	while (**cursor) {
		char *line = *cursor, *newline = strchr(line, '\n');

		if (newline) {
			*newline = '\0';
			*cursor = newline + 1;
		} else {
			*cursor = line + strlen(line);
		}
		if (parse(line, ret_line))
			return true;
	}
	return false;
}

int maps_open(pid_t tid, struct maps *ret_maps)
{
	char path[32], *text;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	r = file_read_text(path, MAPS_TEXT_MAX, &text, NULL);
	if (r == 0)
		*ret_maps = (struct maps){ text, text };
	return r;
}

static int read_again(int maps_fd, struct maps *ret_maps)
{
	char *text;
	int r;

	if (lseek(maps_fd, 0, SEEK_SET) < 0)
		return -errno;
	r = fd_read_text(maps_fd, MAPS_TEXT_MAX, &text, NULL);
	if (r == 0)
		*ret_maps = (struct maps){ text, text };
	return r;
}

int maps_of(const struct target *target, struct maps *ret_maps)
{
	int r = maps_open(target->memory_tid, ret_maps);

	return (r == -EACCES || r == -EPERM) && target->maps_fd >= 0 ? read_again(target->maps_fd, ret_maps) : r;
}

void maps_close(struct maps *maps)
{
	free(maps->text);
	*maps = (struct maps){ NULL, NULL };
}
