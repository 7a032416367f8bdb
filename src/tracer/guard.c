#include "tracer/guard.h"

#include "target/again.h"
#include "target/elf_file.h"
#include "target/process.h"
#include "arch/arch.h"
#include "arch/syscall.h"

#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PATH_SPACE 4096

static void add_site(struct session *session, uint32_t module, uint64_t vaddr, enum guard_kind kind)
{
	int fd = target_module_fd(session->target, module);
	struct guard_site *site;

	if (session->guards.count >= GUARD_SITES_MAX)
		return;
	site = vec_push(&session->guards);
	if (!site)
		return;
	*site = (struct guard_site){ .module = module, .vaddr = vaddr, .kind = kind };
	if (elf_file_text(fd, vaddr, site->text, sizeof(site->text), &site->text_len) < 0)
		session->guards.count--;
}

/* A tracer with all rights takes none from the programs that are executed. */
static bool watches_execs(const struct session *session)
{
	return geteuid() != 0 || session->gives_up_rights;
}

void guard_refuse_ring(struct session *session)
{
	engine_refuse_ring(session->engine, "its sanitizer looks for leaks, and would take what the ring's code leaves below the stack "
			   "pointer for addresses of the program's");
}

void guard_note_module(struct session *session, uint32_t module)
{
	/* Beside the check that a program starts by itself: what runs the one at its end has no name that could be found, and
	 * exit() comes first of all.  exit() and sigaction() are the C library's, through which signal() and its kin go, too;
	 * a sanitizer's sigaction() has that one behind it. */
	enum { EXECVE, EXECVEAT, FEXECVE, FORK, CHECK, RECOVERABLE_CHECK, EXIT, SIGACTION, SITES, START = SITES, COUNT };
	static const char *const names[COUNT] = {
		[EXECVE] = "execve", [EXECVEAT] = "execveat", [FEXECVE] = "fexecve", [FORK] = "_Fork",
		[CHECK] = "__lsan_do_leak_check", [RECOVERABLE_CHECK] = "__lsan_do_recoverable_leak_check",
		[EXIT] = "exit", [SIGACTION] = "sigaction", [START] = "__libc_start_main",
	};
	static const enum guard_kind kinds[SITES] = {
		[EXECVE] = GUARD_EXECVE, [EXECVEAT] = GUARD_EXECVEAT, [FEXECVE] = GUARD_FEXECVE, [FORK] = GUARD_FORK,
		[CHECK] = GUARD_LEAK_CHECK, [RECOVERABLE_CHECK] = GUARD_LEAK_CHECK,
		[EXIT] = GUARD_EXIT, [SIGACTION] = GUARD_SIGACTION,
	};
	int fd = target_module_fd(session->target, module);
	uint64_t vaddrs[COUNT];

	if (fd < 0)
		return;
	/* A static program has those that it executes programs and forks by: what else stands in it is its own business. */
	if (elf_file_symbols(fd, names, COUNT, vaddrs) == 0 && elf_file_program_symbols(fd, names, FORK + 1, vaddrs) == 0)
		return;
	for (unsigned i = 0; i < SITES; i++) {
		if (vaddrs[i] == 0 || (i <= FEXECVE && !watches_execs(session) && !session->alone) ||
		    (i == FORK && !session->alone) || (i >= EXIT && vaddrs[START] == 0))
			continue;
		add_site(session, module, vaddrs[i], kinds[i]);
		session->checks_leaks |= kinds[i] == GUARD_LEAK_CHECK;
	}
	if (session->checks_leaks)
		guard_refuse_ring(session);
}

/* An object whose execve cannot be displaced is left unguarded: its set-id programs lose their rights, and
 * nothing else is wrong. */
static int plant_one(struct session *session, struct guard_site *site)
{
	struct target *target = session->target;
	struct breakpoint *bp;
	const char *reason;
	int r = bp_prepare(target, site->vaddr + target->modules.modules.items[site->module].bias, site->module,
			   site->text, site->text_len, &bp, &reason);

	if (r == 0)
		r = bp_plant(target, bp);
	if (r == 0)
		site->address = bp->address;
	return r == -ESRCH || r == -ENOMEM ? r : 0;
}

int guard_plant(struct session *session)
{
	for (size_t i = 0; i < session->guards.count; i++) {
		struct guard_site *site = &session->guards.items[i];
		/* One of the last two is noted for a process that is let go. */
		bool idle = (site->kind == GUARD_EXIT && !session->checks_leaks) || site->kind == GUARD_FORK ||
			    (site->kind <= GUARD_FEXECVE && !watches_execs(session));
		int r = site->tried || idle ? 0 : plant_one(session, site);

		site->tried |= !idle;
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_to_be_watched(const struct guard_site *site)
{
	return site->kind <= GUARD_FORK && !site->tried;
}

/* Where there is no room for a jump it is seen afterwards that a program was executed. */
int guard_watch_execs(struct session *session)
{
	struct engine_exec execs[GUARD_SITES_MAX];
	const struct guard_site *sites[GUARD_SITES_MAX];
	size_t count = 0;
	int r;

	for (size_t i = 0; i < session->guards.count; i++) {
		struct guard_site *site = &session->guards.items[i];

		if (!is_to_be_watched(site))
			continue;
		site->tried = true;
		site->address = site->vaddr + session->target->modules.modules.items[site->module].bias;
		sites[count] = site;
		execs[count++] = (struct engine_exec){ site->address, site->module, site->text, site->text_len, 0 };
	}
	r = count > 0 ? engine_watch_execs(session->engine, execs, count) : 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (execs[i].error == -ESRCH || execs[i].error == -ENOMEM)
			return execs[i].error;
		/* The others begin with a short instruction in every C library that there is. */
		if (execs[i].error < 0 && (sites[i]->kind == GUARD_EXECVE || sites[i]->kind == GUARD_FORK))
			session->execs_unwatched = true;
	}
	if (r == -ESRCH || r == -ENOMEM)
		return r;
	session->execs_unwatched |= r < 0;
	return 0;
}

_Static_assert(GUARD_SITES_MAX <= ENGINE_EXECS_MAX, "all are watched at once");

void guard_drop_module(struct session *session, uint32_t module)
{
	for (size_t i = session->guards.count; i-- > 0;) {
		if (session->guards.items[i].module == module)
			vec_remove_unordered(&session->guards, i);
	}
}

void guard_forget(struct session *session)
{
	vec_fini(&session->guards);
}

const struct guard_site *guard_find(const struct session *session, const struct breakpoint *bp)
{
	for (size_t i = 0; !bp->site && i < session->guards.count; i++) {
		if (session->guards.items[i].address == bp->address)
			return &session->guards.items[i];
	}
	return NULL;
}

/* Names that mean something else to each process: what of them is to be replaced by our name for that one. */
static const char *skip_self(const char *name, const char **ret_part)
{
	static const struct {
		const char *prefix, *part;
	} names[] = { { "/proc/self/", "" }, { "/proc/thread-self/", "" }, { "/dev/fd/", "fd/" } };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i].prefix);

		*ret_part = names[i].part;
		if (strncmp(name, names[i].prefix, len) == 0)
			return name + len;
	}
	return NULL;
}

/* As the process would find it: from its own root, its folder or an open one.  An empty name is the descriptor's own
 * file. */
static void make_path(pid_t tid, int folder, const char *name, char path[PATH_SPACE])
{
	const char *part, *own = skip_self(name, &part);

	if (own)
		snprintf(path, PATH_SPACE, "/proc/%d/%s%s", tid, part, own);
	else if (name[0] == '/')
		snprintf(path, PATH_SPACE, "/proc/%d/root%s", tid, name);
	else if (folder == AT_FDCWD)
		snprintf(path, PATH_SPACE, "/proc/%d/cwd/%s", tid, name);
	else
		snprintf(path, PATH_SPACE, "/proc/%d/fd/%d%s%s", tid, folder, name[0] ? "/" : "", name);
}

/* Where the kernel gives nobody any. */
static bool gives_none(pid_t tid, const char *path)
{
	struct statvfs fs;
	unsigned long no_new;

	return (proc_status_numbers(tid, "\nNoNewPrivs:", 10, &no_new, 1) == 0 && no_new != 0) ||
	       (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID));
}

static bool gives_rights(pid_t tid, const char *path)
{
	struct stat st;

	/* A file that may not be executed changes nothing, and the caller goes on. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return false;
	if (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
	    ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getegid()))
		return !gives_none(tid, path);
	return getxattr(path, "security.capability", NULL, 0) > 0 && !gives_none(tid, path);
}

/* Who may not look at it, of a process of their own, finds one that has gained something. */
bool guard_may_have_rights(pid_t pid)
{
	char exe[64];
	struct stat st;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	return stat(exe, &st) < 0 || gives_rights(pid, exe);
}

/* --- what was not seen in time --- */

/* A descriptor's name may mean nothing by now, and one of those in /proc another thing to us. */
static bool names_same(pid_t tid, const char *name, const struct stat *file)
{
	char path[PATH_SPACE];
	struct stat st;

	if (name[0] == '\0' || strncmp(name, "/dev/", 5) == 0 || strncmp(name, "/proc/", 6) == 0)
		return false;
	make_path(tid, AT_FDCWD, name, path);
	return stat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* By the name that it was called by, unless that was a script's or a descriptor's: then by its own. */
static int prepare_again(pid_t tid, const char *exe, const struct stat *file)
{
	char name[PATH_SPACE - 64];
	struct again again;
	ssize_t n;
	int r = again_look(tid, &again);

	if (r < 0)
		return r;
	if (again_name(tid, &again, name, sizeof(name)) == 0 && names_same(tid, name, file))
		return again_prepare(tid, &again, NULL);
	n = readlink(exe, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	return names_same(tid, name, file) ? again_prepare(tid, &again, name) : -ENOENT;
}

int guard_give_back_rights(pid_t tid)
{
	char exe[64];
	struct stat st;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", tid);
	if (geteuid() == 0 || stat(exe, &st) < 0 || !gives_rights(tid, exe))
		return 0;
	return prepare_again(tid, exe, &st) == 0 ? 1 : -EPERM;
}

/* The file that is to be executed, as we find it.  False: its name cannot be read. */
static bool find_file(const struct session *session, pid_t tid, enum guard_kind kind, const uint64_t args[2], char path[PATH_SPACE])
{
	const struct reader reader = target_reader(session->target);
	int folder = kind == GUARD_EXECVE ? AT_FDCWD : (int)args[0];
	char name[PATH_SPACE - 64] = "";

	if (kind != GUARD_FEXECVE && reader_string(&reader, args[kind == GUARD_EXECVE ? 0 : 1], name, sizeof(name)) < 0)
		return false;
	make_path(tid, folder, name, path);
	return true;
}

bool guard_forbids_exec(const struct session *session, pid_t tid, enum guard_kind kind,
			const struct user_regs_struct *regs)
{
	const uint64_t args[] = { arch_argument(regs, 0), arch_argument(regs, 1) };
	char path[PATH_SPACE];

	return geteuid() != 0 && find_file(session, tid, kind, args, path) && gives_rights(tid, path);
}

static const struct guard_site *find_function(const struct session *session, raddr function)
{
	for (size_t i = 0; i < session->guards.count; i++) {
		if (session->guards.items[i].address == function)
			return &session->guards.items[i];
	}
	return NULL;
}

enum guard_exec guard_judge_exec(const struct session *session, pid_t tid, raddr function, const uint64_t args[2])
{
	const struct guard_site *site = find_function(session, function);
	char path[PATH_SPACE];
	struct stat st;

	if (site && site->kind == GUARD_FORK)
		return GUARD_EXEC_ORDINARY;
	if (!site || !find_file(session, tid, site->kind, args, path))
		return GUARD_EXEC_NOTHING;
	/* A shell's search for a program tries many names. */
	if (stat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR))
		return GUARD_EXEC_NOTHING;
	return geteuid() != 0 && gives_rights(tid, path) ? GUARD_EXEC_GAINS_RIGHTS : GUARD_EXEC_ORDINARY;
}

bool guard_forbids_exec_call(const struct session *session, pid_t tid, const struct user_regs_struct *regs)
{
	return guard_forbids_exec(session, tid, syscall_is_exec_at(regs) ? GUARD_EXECVEAT : GUARD_EXECVE, regs);
}
