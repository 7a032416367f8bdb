#include "state.h"

#include "base/fd.h"
#include "live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROC_FILE_MAX (16u << 20)
#define CHUNK_BYTES 65536
#define LIBC_TEXT_LEAST 400000         /* musl's; glibc has three times as much */
#define ANONYMOUS "anonymous "

/* One fact per line, in the kernel's order. */
struct state {
	char *facts;
	size_t len;
};

static char *read_proc(pid_t pid, const char *name)
{
	const char *path = live_text("/proc/%d/%s", pid, name);
	char *text;
	int r = file_read_text(path, PROC_FILE_MAX, &text, NULL);

	if (r < 0)
		live_fail("%s: %s", path, strerror(-r));
	return text;
}

static const char *status_field(const char *status, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = status; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, len) && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " \t");
	}
	return "?";
}

static void tell_field(FILE *f, const char *of, const char *status, const char *name)
{
	const char *value = status_field(status, name);

	fprintf(f, "%s %s %.*s\n", of, name, (int)strcspn(value, "\n"), value);
}

static void tell_process(FILE *f, pid_t pid)
{
	static const char *const fields[] = {
		"Tgid", "PPid", "Uid", "Gid", "FDSize", "Groups", "Threads", "ShdPnd", "SigIgn", "SigCgt",
		"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters",
	};
	char *status = read_proc(pid, "status");

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		tell_field(f, "process", status, fields[i]);
	free(status);
}

/* Running or sleeping comes and goes; stopped and traced do not. */
static void tell_thread(FILE *f, pid_t pid, const char *tid)
{
	const char *of = live_text("thread %s", tid), *path = live_text("/proc/%d/task/%s/status", pid, tid);
	char *status, letter;
	int r = file_read_text(path, PROC_FILE_MAX, &status, NULL);

	/* It has ended since it was listed. */
	if (r == -ENOENT || r == -ESRCH)
		return;
	if (r < 0)
		live_fail("%s: %s", path, strerror(-r));
	letter = *status_field(status, "State");
	fprintf(f, "%s state %s\n", of, letter == 'T' ? "stopped" : letter == 't' ? "traced" :
		letter == 'Z' ? "dead" : "alive");
	tell_field(f, of, status, "TracerPid");
	tell_field(f, of, status, "SigPnd");
	tell_field(f, of, status, "SigBlk");
	free(status);
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
	return atoi((*a)->d_name) - atoi((*b)->d_name);
}

static int is_number(const struct dirent *entry)
{
	return entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
}

static void for_each_number(FILE *f, pid_t pid, const char *name, void (*tell)(FILE *, pid_t, const char *))
{
	const char *path = live_text("/proc/%d/%s", pid, name);
	struct dirent **list;
	int n = scandir(path, &list, is_number, by_number);

	if (n < 0)
		live_fail("%s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		tell(f, pid, list[i]->d_name);
		free(list[i]);
	}
	free(list);
}

static void tell_descriptor(FILE *f, pid_t pid, const char *fd)
{
	char to[PATH_MAX];
	ssize_t n = readlink(live_text("/proc/%d/fd/%s", pid, fd), to, sizeof(to));

	fprintf(f, "descriptor %s is %.*s\n", fd, n < 0 ? 0 : (int)n, to);
}

struct mapping {
	unsigned long start, end, offset, inode;
	char permissions[5];
	const char *path;
};

static bool parse_mapping(char *line, struct mapping *ret_mapping)
{
	struct mapping m;
	int at = 0;

	if (sscanf(line, "%lx-%lx %4s %lx %*s %lu %n", &m.start, &m.end, m.permissions, &m.offset, &m.inode,
		   &at) != 5)
		return false;
	m.path = line + at;
	*ret_mapping = m;
	return true;
}

/* A heap and a stack may grow; everything else is there to stay. */
static bool grows_by_itself(const struct mapping *m)
{
	if (m->permissions[2] == 'x')
		return false;
	return m->inode == 0 && (!*m->path || !strcmp(m->path, "[heap]") || !strcmp(m->path, "[stack]") ||
				 !strncmp(m->path, "[anon", 5));
}

static void tell_mappings(FILE *f, pid_t pid)
{
	char *maps = read_proc(pid, "maps"), *next = maps, *line;
	struct mapping m;

	while ((line = strsep(&next, "\n"))) {
		if (parse_mapping(line, &m))
			fprintf(f, "%smapping %lx-%lx %s %lx %s\n", grows_by_itself(&m) ? ANONYMOUS : "",
				m.start, m.end, m.permissions, m.offset, m.path);
	}
	free(maps);
}

pid_t living_thread(pid_t pid)
{
	const char *path = live_text("/proc/%d/task", pid);
	DIR *tasks = opendir(path);
	struct dirent *entry;
	pid_t tid = 0;

	if (!tasks)
		live_fail("%s: %s", path, strerror(errno));
	while (tid == 0 && (entry = readdir(tasks))) {
		if (is_number(entry) && thread_state(pid, atoi(entry->d_name)) != 'Z')
			tid = atoi(entry->d_name);
	}
	closedir(tasks);
	if (tid == 0)
		live_fail("no thread of %d lives", pid);
	return tid;
}

/* The C library's own signals, which it blocks in a thread that it makes, until that begins. */
#define OWN_SIGNALS (1ULL << (32 - 1) | 1ULL << (33 - 1))
#define BIRTH_MS 2000

static void count_unborn(FILE *f, pid_t pid, const char *tid)
{
	char *status;

	if (file_read_text(live_text("/proc/%d/task/%s/status", pid, tid), PROC_FILE_MAX, &status, NULL) < 0)
		return;
	if ((strtoull(status_field(status, "SigBlk"), NULL, 16) & OWN_SIGNALS) == OWN_SIGNALS)
		fputc('.', f);
	free(status);
}

static bool all_have_begun(void *pid)
{
	char *unborn = NULL;
	size_t count = 0;
	FILE *f = open_memstream(&unborn, &count);

	if (!f)
		live_fail("out of memory");
	for_each_number(f, *(pid_t *)pid, "task", count_unborn);
	fclose(f);
	free(unborn);
	return count == 0;
}

struct state *state_take(pid_t pid)
{
	struct state *state = calloc(1, sizeof(*state));
	FILE *f = state ? open_memstream(&state->facts, &state->len) : NULL;

	if (!f)
		live_fail("out of memory");
	/* A program may block them for good, by system calls of its own. */
	live_wait(all_have_begun, &pid, BIRTH_MS);
	tell_process(f, pid);
	for_each_number(f, pid, "task", tell_thread);
	for_each_number(f, living_thread(pid), "fd", tell_descriptor);
	tell_mappings(f, living_thread(pid));
	fclose(f);
	return state;
}

static const char *next_fact(const char **at, bool strict, int *ret_len)
{
	while (**at) {
		const char *fact = *at;
		size_t len = strcspn(fact, "\n");

		*at = fact + len + 1;
		if (strict || strncmp(fact, ANONYMOUS, strlen(ANONYMOUS))) {
			*ret_len = (int)len;
			return fact;
		}
	}
	*ret_len = 7;
	return "nothing";
}

const char *state_difference(const struct state *before, const struct state *after, bool strict)
{
	const char *old = before->facts, *new = after->facts;

	while (*old || *new) {
		int old_len, new_len;
		const char *was = next_fact(&old, strict, &old_len);
		const char *is = next_fact(&new, strict, &new_len);

		if (old_len != new_len || strncmp(was, is, (size_t)old_len))
			return live_text("was '%.*s', is '%.*s'", old_len, was, new_len, is);
	}
	return NULL;
}

void state_require_same(pid_t pid, const struct state *before, bool strict)
{
	const char *difference = state_difference(before, state_take(pid), strict);

	if (difference)
		live_fail("process %d is not as it was: %s", pid, difference);
}

/* The file that is mapped, even when another has its name by now; that way is root's only. */
static int open_mapped(pid_t pid, const struct mapping *m)
{
	int fd = open(live_text("/proc/%d/map_files/%lx-%lx", pid, m->start, m->end), O_RDONLY | O_CLOEXEC);

	return fd < 0 ? open(live_text("/proc/%d/root%s", pid, m->path), O_RDONLY | O_CLOEXEC) : fd;
}

/* Behind the file's end the page holds zeros. */
static size_t read_padded(int fd, void *buf, size_t len, off_t at)
{
	ssize_t n = pread(fd, buf, len, at);

	if (n < 0)
		live_fail("reading a mapped file: %s", strerror(errno));
	memset((char *)buf + n, 0, len - (size_t)n);
	return len;
}

static const char *compare_mapping(pid_t pid, int mem, const struct mapping *m, size_t *bytes)
{
	static unsigned char memory[CHUNK_BYTES], file[CHUNK_BYTES];
	int fd = open_mapped(pid, m);

	if (fd < 0)
		live_fail("%s: %s", m->path, strerror(errno));
	for (unsigned long at = m->start; at < m->end;) {
		size_t len = m->end - at < CHUNK_BYTES ? m->end - at : CHUNK_BYTES;

		if (pread(mem, memory, len, (off_t)at) != (ssize_t)len)
			live_fail("reading process %d at 0x%lx: %s", pid, at, strerror(errno));
		read_padded(fd, file, len, (off_t)(m->offset + (at - m->start)));
		for (size_t i = 0; i < len; i++) {
			if (memory[i] == file[i])
				continue;
			close(fd);
			return live_text("at 0x%lx (%s+0x%lx) the memory has %02x, the file %02x", at + i, m->path,
					 m->offset + (at - m->start) + i, memory[i], file[i]);
		}
		at += len;
		*bytes += len;
	}
	close(fd);
	return NULL;
}

const char *text_difference(pid_t process, size_t *ret_bytes)
{
	pid_t pid = living_thread(process);
	int mem = open(live_text("/proc/%d/mem", pid), O_RDONLY | O_CLOEXEC);
	char *maps = read_proc(pid, "maps"), *next = maps, *line;
	const char *difference = NULL;
	struct mapping m;

	if (mem < 0)
		live_fail("/proc/%d/mem: %s", pid, strerror(errno));
	*ret_bytes = 0;
	while (!difference && (line = strsep(&next, "\n"))) {
		if (parse_mapping(line, &m) && m.permissions[2] == 'x' && m.inode)
			difference = compare_mapping(pid, mem, &m, ret_bytes);
	}
	close(mem);
	free(maps);
	return difference;
}

void text_require_intact(pid_t pid)
{
	size_t bytes;
	const char *difference = text_difference(pid, &bytes);
	char *maps = read_proc(living_thread(pid), "maps");
	bool has_libc = strstr(maps, "/libc.so") || strstr(maps, "/libc-");

	free(maps);
	if (difference)
		live_fail("the text of process %d is not as in its files: %s", pid, difference);
	if (bytes == 0 || (has_libc && bytes < LIBC_TEXT_LEAST))
		live_fail("only %zu bytes of text of process %d were compared", bytes, pid);
	live_note("process %d: %zu bytes of text are those of its files", pid, bytes);
}

static void require_thread_free(FILE *f, pid_t pid, const char *tid)
{
	char *status = read_proc(pid, live_text("task/%s/status", tid));

	(void)f;
	if (atoi(status_field(status, "TracerPid")))
		live_fail("thread %s of %d is still traced by %d", tid, pid,
			  atoi(status_field(status, "TracerPid")));
	if (strchr("t", *status_field(status, "State")))
		live_fail("thread %s of %d is left in a ptrace stop", tid, pid);
	free(status);
}

static void require_thread_not_stopped(FILE *f, pid_t pid, const char *tid)
{
	(void)f;
	if (thread_state(pid, atoi(tid)) == 'T')
		live_fail("thread %s of %d is left stopped", tid, pid);
}

void require_unharmed(pid_t pid, const struct state *before)
{
	for_each_number(NULL, pid, "task", require_thread_free);
	if (!before)
		for_each_number(NULL, pid, "task", require_thread_not_stopped);
	text_require_intact(pid);
	if (before)
		state_require_same(pid, before, false);
}

long long status_number(pid_t pid, const char *name, int base)
{
	char *status;
	long long number;

	if (file_read_text(live_text("/proc/%d/status", pid), PROC_FILE_MAX, &status, NULL) < 0)
		return -1;
	number = strtoll(status_field(status, name), NULL, base);
	free(status);
	return number;
}

/* The ring's memory, which goes when it is detached from, or healed. */
static bool has_ring(pid_t pid)
{
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "re");
	bool found = false;
	char line[4096];

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, "/memfd:allocwatch-ring") != NULL;
	if (maps)
		fclose(maps);
	return found;
}

bool state_is_traced(void *context)
{
	return status_number(*(pid_t *)context, "TracerPid", 10) > 0 || has_ring(*(pid_t *)context);
}

/* Threads are let go one after the other. */
bool state_has_no_tracer(void *context)
{
	pid_t pid = *(pid_t *)context;
	DIR *tasks = opendir(live_text("/proc/%d/task", pid));
	struct dirent *entry;
	bool traced = status_number(pid, "TracerPid", 10) != 0;

	while (tasks && !traced && (entry = readdir(tasks)))
		traced = is_number(entry) && status_number((pid_t)atoi(entry->d_name), "TracerPid", 10) > 0;
	if (tasks)
		closedir(tasks);
	return !traced;
}

bool state_is_untraced(void *context)
{
	return state_has_no_tracer(context) && !has_ring(*(pid_t *)context);
}

bool state_text_is_intact(void *context)
{
	size_t bytes;

	return text_difference(*(pid_t *)context, &bytes) == NULL;
}

char thread_state(pid_t pid, pid_t tid)
{
	char *status = read_proc(pid, live_text("task/%d/status", tid));
	char state = *status_field(status, "State");

	free(status);
	return state;
}

static unsigned count_executable(pid_t pid)
{
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "r");
	char line[PATH_MAX + 256], permissions[8];
	unsigned count = 0;

	while (maps && fgets(line, sizeof(line), maps))
		count += sscanf(line, "%*s %7s", permissions) == 1 && permissions[2] == 'x';
	if (maps)
		fclose(maps);
	return count;
}

#define LIBC_SIGNALS (3LL << 31)

struct outline outline_take(pid_t pid)
{
	return (struct outline){ .caught = status_number(pid, "SigCgt", 16) & ~LIBC_SIGNALS,
				 .ignored = status_number(pid, "SigIgn", 16) & ~LIBC_SIGNALS,
				 .blocked = status_number(pid, "SigBlk", 16), .executable = count_executable(pid) };
}

struct outline_look {
	pid_t pid;
	const struct outline *before;
	bool mappings;
	const char *difference;
};

static bool is_as_before(void *context)
{
	struct outline_look *look = context;
	struct outline is = outline_take(look->pid);
	const struct outline *was = look->before;

	look->difference = NULL;
	if (was->caught != is.caught || was->ignored != is.ignored || was->blocked != is.blocked)
		look->difference = live_text("SigCgt %llx, SigIgn %llx, SigBlk %llx; now %llx, %llx, %llx", was->caught,
					     was->ignored, was->blocked, is.caught, is.ignored, is.blocked);
	else if (look->mappings && was->executable != is.executable)
		look->difference = live_text("%u executable mappings, now %u", was->executable, is.executable);
	return look->difference == NULL;
}

const char *outline_wait(pid_t pid, const struct outline *before, bool mappings, int timeout_ms)
{
	struct outline_look look = { pid, before, mappings, NULL };

	live_wait(is_as_before, &look, timeout_ms);
	return look.difference;
}
