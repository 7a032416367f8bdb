#include "sampler.h"

#include "base/fd.h"
#include "process_map.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define BREAKPOINTS_MAX 1024

struct breakpoint {
	raddr at;
	long word;                         /* as it was */
};

struct sampler {
	pid_t process;
	pid_t thread;                      /* the stopped one; 0: all run */
	struct breakpoint breakpoints[BREAKPOINTS_MAX];
	unsigned int breakpoint_count;
	struct breakpoint *reached;        /* where `thread` stands before the first step */
	uint32_t every, max_steps, random;
	bool all;
	struct module_map map;             /* of the libraries at the start */
};

static uint32_t next_random(struct sampler *s)
{
	s->random = s->random * 1103515245u + 12345u;
	return s->random >> 8;
}

static void plant(struct sampler *s, pid_t thread, const struct breakpoint *b)
{
	(void)s;
	ptrace(PTRACE_POKETEXT, thread, b->at, (b->word & ~0xffL) | ARCH_BREAKPOINT_BYTE);
}

static void lift(pid_t thread, const struct breakpoint *b)
{
	ptrace(PTRACE_POKETEXT, thread, b->at, b->word);
}

static void add_breakpoint(struct sampler *s, raddr at)
{
	struct breakpoint *b = &s->breakpoints[s->breakpoint_count];

	for (unsigned int i = 0; i < s->breakpoint_count; i++)
		if (s->breakpoints[i].at == at)
			return;
	if (s->breakpoint_count == BREAKPOINTS_MAX)
		return;
	errno = 0;
	*b = (struct breakpoint){ .at = at, .word = ptrace(PTRACE_PEEKTEXT, s->process, at, 0) };
	if (errno != 0)
		return;
	s->breakpoint_count++;
	plant(s, s->process, b);
}

static const char *const malloc_alone[] = { "malloc", NULL };

static bool is_among(const char *const *functions, const char *name)
{
	while (*functions && strcmp(*functions, name) != 0)
		functions++;
	return *functions;
}

/* All functions of these names that a table of symbols defines. */
static void plant_table(struct sampler *s, Elf *elf, Elf_Scn *section, const GElf_Shdr *header, raddr bias,
			const char *const *functions)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);

		if (name && GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF &&
		    is_among(functions, name))
			add_breakpoint(s, symbol.st_value + bias);
	}
}

/* A program without libraries has no dynamic table. */
static void plant_module(struct sampler *s, int fd, raddr bias, const char *const *functions)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while (elf && (section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, &header) && (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB))
			plant_table(s, elf, section, &header, bias, functions);
	}
	elf_end(elf);
}

static int plant_all(struct sampler *s, const char *const *functions)
{
	int err = process_map_update(s->process, &s->map, NULL);

	elf_version(EV_CURRENT);
	for (uint32_t i = 0; err == 0 && i < s->map.modules.count; i++) {
		int fd = process_map_open(s->process, &s->map, i);

		if (fd < 0)
			continue;
		plant_module(s, fd, s->map.modules.items[i].bias, functions);
		fd_close(&fd);
	}
	if (err == 0 && s->breakpoint_count == 0)
		err = -ENOENT;
	return err;
}

static uint64_t entry_point(pid_t process)
{
	char path[64];
	Elf64_auxv_t entry = { 0 };
	uint64_t found = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && read(fd, &entry, sizeof(entry)) == sizeof(entry) && entry.a_type != AT_NULL)
		if (entry.a_type == AT_ENTRY)
			found = entry.a_un.a_val;
	fd_close(&fd);
	return found;
}

/* At its entry point a program has its libraries. */
static int run_to_entry(pid_t process)
{
	struct breakpoint entry = { .at = entry_point(process) };
	struct user_regs_struct regs;
	int status;

	errno = 0;
	entry.word = ptrace(PTRACE_PEEKTEXT, process, entry.at, 0);
	if (errno != 0)
		return -errno;
	ptrace(PTRACE_POKETEXT, process, entry.at, (entry.word & ~0xffL) | ARCH_BREAKPOINT_BYTE);
	ptrace(PTRACE_CONT, process, 0, 0);
	if (waitpid(process, &status, 0) < 0 || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		return -ENOEXEC;
	lift(process, &entry);
	ptrace(PTRACE_GETREGS, process, 0, &regs);
	regs.rip = entry.at;
	ptrace(PTRACE_SETREGS, process, 0, &regs);
	return 0;
}

static void become_program(const struct sampler_options *options)
{
	int in = open(options->stdin_path ? options->stdin_path : "/dev/null", O_RDONLY);
	int out = open("/dev/null", O_WRONLY);

	dup2(in, 0);
	dup2(out, 1);
	dup2(out, 2);
	if (options->uid && (setgroups(0, NULL) || setresgid(options->uid, options->uid, options->uid) ||
			     setresuid(options->uid, options->uid, options->uid)))
		_exit(126);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	execvp(options->argv[0], options->argv);
	_exit(127);
}

struct sampler *sampler_start(const struct sampler_options *options)
{
	struct sampler *s = calloc(1, sizeof(*s));
	int status, err;

	if (!s)
		return NULL;
	s->every = options->every ? options->every : 1;
	s->all = options->all;
	s->max_steps = options->max_steps;
	s->random = 42;
	module_map_init(&s->map);
	s->process = fork();
	if (s->process == 0)
		become_program(options);
	err = -ENOEXEC;
	if (s->process < 0 || waitpid(s->process, &status, 0) < 0 || !WIFSTOPPED(status))
		goto fail;
	ptrace(PTRACE_SETOPTIONS, s->process, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE);
	err = run_to_entry(s->process);
	if (err == 0)
		err = plant_all(s, options->functions ? options->functions : malloc_alone);
	if (err < 0)
		goto fail;
	s->thread = s->process;
	return s;
fail:
	sampler_free(s);
	errno = -err;
	return NULL;
}

static struct breakpoint *breakpoint_at(struct sampler *s, raddr at)
{
	for (unsigned int i = 0; i < s->breakpoint_count; i++)
		if (s->breakpoints[i].at == at)
			return &s->breakpoints[i];
	return NULL;
}

/* The breakpoint that a thread has just run into, with its pc set back on it; NULL for any other stop. */
static struct breakpoint *is_hit(struct sampler *s, pid_t thread, int status)
{
	struct user_regs_struct regs;
	struct breakpoint *b;

	if (WSTOPSIG(status) != SIGTRAP || status >> 16 != 0)
		return NULL;
	if (ptrace(PTRACE_GETREGS, thread, 0, &regs) < 0)
		return NULL;
	b = breakpoint_at(s, regs.rip - 1);
	if (!b)
		return NULL;
	regs.rip--;
	ptrace(PTRACE_SETREGS, thread, 0, &regs);
	return b;
}

/* One instruction of one thread, displaced by a breakpoint or not.  False when it did not come back. */
static bool single_step(struct sampler *s, pid_t thread, struct breakpoint *on)
{
	int status, deliver = 0;

	for (;;) {
		if (on)
			lift(thread, on);
		ptrace(PTRACE_SINGLESTEP, thread, 0, deliver);
		if (waitpid(thread, &status, __WALL) < 0 || !WIFSTOPPED(status))
			return false;
		if (on)
			plant(s, thread, on);
		if (WSTOPSIG(status) == SIGTRAP)
			return true;
		deliver = WSTOPSIG(status);
	}
}

static void resume(struct sampler *s)
{
	if (s->thread == 0)
		return;
	if (s->reached && !single_step(s, s->thread, s->reached))
		return;
	s->reached = NULL;
	ptrace(PTRACE_CONT, s->thread, 0, 0);
	s->thread = 0;
}

/* Waits until a thread reaches a breakpoint; other stops are passed on. */
static bool wait_for_hit(struct sampler *s)
{
	for (;;) {
		int status, signal;
		pid_t thread = waitpid(-1, &status, __WALL);

		if (thread < 0 || (thread == s->process && !WIFSTOPPED(status)))
			return false;
		if (!WIFSTOPPED(status))
			continue;
		s->reached = is_hit(s, thread, status);
		if (s->reached) {
			s->thread = thread;
			return true;
		}
		signal = WSTOPSIG(status);
		if (status >> 16 != 0 || signal == SIGTRAP || signal == SIGSTOP)
			signal = 0;                     /* ours: clone events, first stops of threads */
		ptrace(PTRACE_CONT, thread, 0, signal);
	}
}

/* Some instructions further on, unless a call of malloc or a system call is in the way. */
static bool step_further(struct sampler *s)
{
	uint32_t steps = s->max_steps && next_random(s) % 2 ? next_random(s) % (s->max_steps + 1) : 0;

	while (steps-- > 0) {
		struct user_regs_struct regs;

		if (!single_step(s, s->thread, s->reached))
			return false;
		s->reached = NULL;
		if (ptrace(PTRACE_GETREGS, s->thread, 0, &regs) < 0)
			return false;
		s->reached = breakpoint_at(s, regs.rip);
		if (s->reached)
			break;
	}
	return true;
}

bool sampler_next(struct sampler *s, struct sample *ret_sample)
{
	uint32_t skip = s->all ? 0 : next_random(s) % (2 * s->every);
	struct user_regs_struct regs;

	do {
		resume(s);
		if (!wait_for_hit(s))
			return false;
	} while (skip-- > 0);
	if (!step_further(s) || ptrace(PTRACE_GETREGS, s->thread, 0, &regs) < 0)
		return false;
	ret_sample->process = s->process;
	ret_sample->thread = s->thread;
	arch_regs_from_user(&regs, &ret_sample->regs);
	return true;
}

/* The thread stands still, with the signal that is then to be given to it; -1: it is gone. */
static int stop_thread(struct sampler *s, pid_t thread)
{
	int status;

	if (syscall(SYS_tgkill, s->process, thread, SIGSTOP) < 0 || waitpid(thread, &status, __WALL) < 0 ||
	    !WIFSTOPPED(status))
		return -1;
	if (is_hit(s, thread, status) || status >> 16 != 0 || WSTOPSIG(status) == SIGTRAP)
		return 0;                       /* the SIGSTOP is still to come, and means them all */
	return WSTOPSIG(status);
}

/* Calls act for all threads but the stopped one. */
static void for_others(struct sampler *s, void (*act)(struct sampler *s, pid_t thread))
{
	char path[64];
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)s->process);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		pid_t thread = (pid_t)atoi(entry->d_name);

		if (thread > 0 && thread != s->thread)
			act(s, thread);
	}
	if (tasks)
		closedir(tasks);
}

static void let_thread_go(struct sampler *s, pid_t thread)
{
	int signal = stop_thread(s, thread);

	if (signal >= 0)
		ptrace(PTRACE_DETACH, thread, 0, signal);
}

static void take_thread_back(struct sampler *s, pid_t thread)
{
	(void)s;
	ptrace(PTRACE_SEIZE, thread, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE);
}

int sampler_let_go(struct sampler *s)
{
	for_others(s, let_thread_go);
	for (unsigned int i = 0; i < s->breakpoint_count; i++)
		lift(s->thread, &s->breakpoints[i]);
	return ptrace(PTRACE_DETACH, s->thread, 0, SIGSTOP) < 0 ? -errno : 0;
}

int sampler_take_back(struct sampler *s)
{
	int status;

	if (ptrace(PTRACE_SEIZE, s->thread, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE) < 0)
		return -errno;
	if (waitpid(s->thread, &status, __WALL) < 0 || !WIFSTOPPED(status))
		return -ECHILD;
	for_others(s, take_thread_back);
	for (unsigned int i = 0; i < s->breakpoint_count; i++)
		plant(s, s->thread, &s->breakpoints[i]);
	kill(s->process, SIGCONT);
	return 0;
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	if (s->process > 0) {
		pid_t ended;

		/* A process is reaped after all of its traced threads. */
		kill(s->process, SIGKILL);
		do
			ended = waitpid(-1, NULL, __WALL);
		while (ended > 0 && ended != s->process);
	}
	module_map_fini(&s->map);
	free(s);
}

pid_t sampler_process(const struct sampler *s)
{
	return s->process;
}

int sampler_update_map(struct sampler *s, struct module_map *map, struct unwinder *unwinder)
{
	return process_map_update(s->process, map, unwinder);
}

static int read_target(void *context, raddr at, void *buf, size_t len)
{
	struct sampler *s = context;
	struct iovec local = { .iov_base = buf, .iov_len = len };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)at, .iov_len = len };

	if (process_vm_readv(s->process, &local, 1, &remote, 1, 0) != (ssize_t)len)
		return errno == ESRCH ? -ESRCH : -EFAULT;
	for (unsigned int i = 0; i < s->breakpoint_count; i++) {
		const struct breakpoint *b = &s->breakpoints[i];

		if (b->at >= at && b->at - at < len)
			((uint8_t *)buf)[b->at - at] = (uint8_t)b->word;
	}
	return 0;
}

struct reader sampler_reader(struct sampler *s)
{
	return (struct reader){ .read = read_target, .context = s };
}
