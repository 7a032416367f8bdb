#include "tracer/exec_guard.h"

#include "target/elf_file.h"
#include "arch/arch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PATH_SPACE 4096

void exec_guard_add_site(struct session *session, uint32_t module, uint64_t vaddr, enum guard_kind kind)
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

void exec_guard_note_module(struct session *session, uint32_t module)
{
	int fd = target_module_fd(session->target, module);
	uint64_t vaddr;

	if (geteuid() == 0 && !session->gives_up_rights)
		return;
	if (fd >= 0 && elf_file_symbol(fd, "execve", &vaddr) == 0)
		exec_guard_add_site(session, module, vaddr, GUARD_EXECVE);
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

int exec_guard_plant(struct session *session)
{
	for (size_t i = 0; i < session->guards.count; i++) {
		struct guard_site *site = &session->guards.items[i];
		bool idle = site->kind == GUARD_EXIT && !session->checks_leaks;
		int r = site->tried || idle ? 0 : plant_one(session, site);

		site->tried |= !idle;
		if (r < 0)
			return r;
	}
	return 0;
}

void exec_guard_drop_module(struct session *session, uint32_t module)
{
	for (size_t i = session->guards.count; i-- > 0;) {
		if (session->guards.items[i].module == module)
			vec_remove_unordered(&session->guards, i);
	}
}

void exec_guard_forget(struct session *session)
{
	vec_fini(&session->guards);
}

const struct guard_site *exec_guard_find(const struct session *session, const struct breakpoint *bp)
{
	for (size_t i = 0; !bp->site && i < session->guards.count; i++) {
		if (session->guards.items[i].address == bp->address)
			return &session->guards.items[i];
	}
	return NULL;
}

/* As the process would find it, from its own root and folder. */
static bool path_of(const struct session *session, pid_t tid, raddr at, char path[PATH_SPACE])
{
	char name[PATH_SPACE - 64];
	size_t len = 0;

	/* Byte by byte at the end of a page only: strings lie where they lie. */
	while (len < sizeof(name)) {
		size_t piece = 256 - (at + len) % 256;

		if (piece > sizeof(name) - len)
			piece = sizeof(name) - len;
		if (target_read(session->target, at + len, name + len, piece) < 0)
			return false;
		if (memchr(name + len, '\0', piece))
			break;
		len += piece;
	}
	if (len >= sizeof(name))
		return false;
	snprintf(path, PATH_SPACE, name[0] == '/' ? "/proc/%d/root%s" : "/proc/%d/cwd/%s", tid, name);
	return true;
}

static bool gives_rights(const char *path)
{
	struct stat st;

	/* A file that may not be executed changes nothing, and the caller goes on. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return false;
	if (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
	    ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getegid()))
		return true;
	return getxattr(path, "security.capability", NULL, 0) > 0;
}

bool exec_guard_forbids(const struct session *session, pid_t tid, const struct user_regs_struct *regs)
{
	char path[PATH_SPACE];

	return geteuid() != 0 && path_of(session, tid, arch_argument(regs, 0), path) && gives_rights(path);
}
