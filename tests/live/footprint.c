#include "footprint.h"

#include "live.h"
#include "state.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

static long field(pid_t pid, const char *name)
{
	long long value = status_number(pid, name, 10);

	if (value < 0)
		live_fail("process %d has no %s", pid, name);
	return (long)value;
}

static long lines_of(const char *path)
{
	FILE *file = fopen(path, "r");
	long count = 0;
	int c;

	if (!file)
		live_fail("cannot read %s", path);
	while ((c = getc(file)) != EOF)
		count += c == '\n';
	fclose(file);
	return count;
}

long folder_entries(const char *path, long long *ret_bytes)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	long count = 0;

	if (!dir)
		live_fail("cannot list %s", path);
	while ((entry = readdir(dir))) {
		struct stat st;

		if (entry->d_name[0] == '.')
			continue;
		count++;
		if (ret_bytes && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0)
			*ret_bytes += st.st_size;
	}
	closedir(dir);
	return count;
}

struct footprint footprint_of(pid_t pid)
{
	return (struct footprint){
		.rss = field(pid, "VmRSS"),
		.anonymous = field(pid, "RssAnon"),
		.data = field(pid, "VmData"),
		.descriptors = folder_entries(live_text("/proc/%d/fd", pid), NULL),
		.mappings = lines_of(live_text("/proc/%d/maps", pid)),
		.threads = field(pid, "Threads"),
	};
}
