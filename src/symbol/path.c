#include "symbol/path.h"

#include <stdbool.h>
#include <string.h>

struct path {
	char *text;
	size_t len, space;
	bool absolute;
};

static bool is_dots(const char *part, size_t len, size_t dots)
{
	return len == dots && memcmp(part, "..", dots) == 0;
}

/* Takes the last part away; false when there is none that "name/.." could mean. */
static bool drop_last_part(struct path *path)
{
	size_t start = path->len;

	if (path->absolute && path->len == 1)
		return true;
	while (start > 0 && path->text[start - 1] != '/')
		start--;
	if (start == path->len || is_dots(path->text + start, path->len - start, 1) ||
	    is_dots(path->text + start, path->len - start, 2))
		return false;
	path->len = start > 1 ? start - 1 : start;
	return true;
}

static void add_part(struct path *path, const char *part, size_t len)
{
	bool slash = path->len > 0 && path->text[path->len - 1] != '/';

	if (path->len + slash + len + 1 > path->space) {
		path->space = 0;         /* cut here: what follows must not close the gap */
		return;
	}
	if (slash)
		path->text[path->len++] = '/';
	memcpy(path->text + path->len, part, len);
	path->len += len;
}

static void add_parts(struct path *path, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "/");
		bool nothing = len == 0 || (is_dots(text, len, 1) && path->len > 0);

		if (!nothing && !(is_dots(text, len, 2) && drop_last_part(path)))
			add_part(path, text, len);
		text += len;
		text += strspn(text, "/");
	}
}

void path_join(const char *comp_dir, const char *name, char *buf, size_t space)
{
	bool joined = name[0] != '/' && comp_dir && comp_dir[0];
	struct path path = { .text = buf, .space = space };

	path.absolute = (joined ? comp_dir : name)[0] == '/';
	if (path.absolute)
		path.text[path.len++] = '/';
	if (joined)
		add_parts(&path, comp_dir);
	add_parts(&path, name);
	path.text[path.len] = '\0';
}
