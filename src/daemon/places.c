#define _GNU_SOURCE              /* asprintf */
#include "daemon/places.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* After su and sudo a variable may still name another user's folder. */
static const char *own_folder(const char *variable)
{
	const char *folder = getenv(variable);
	struct stat st;

	return folder && folder[0] == '/' && stat(folder, &st) == 0 && st.st_uid == geteuid() ? folder : NULL;
}

static const char *home(void)
{
	const char *folder = own_folder("HOME");
	const struct passwd *user;

	if (folder)
		return folder;
	user = getpwuid(geteuid());
	return user ? user->pw_dir : NULL;
}

char *place_of_user(const char *variable, const char *below)
{
	const char *folder = own_folder(variable), *at_home;
	char *path;

	if (folder)
		return strdup(folder);
	at_home = home();
	return at_home && asprintf(&path, "%s%s", at_home, below) >= 0 ? path : NULL;
}
