#include "tracer/foreign.h"

#include "target/elf_file.h"
#include "tracer/guard.h"

#include "base/fd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAPS_SPACE (64u << 20)

void foreign_note_module(struct session *session, uint32_t module)
{
	/* The check that the program starts by itself and the one at its exit.  What runs at exit has no name that could
	 * be found; exit() itself comes first of all. */
	enum { CHECK, RECOVERABLE_CHECK, START, EXIT, SIGACTION, COUNT };
	static const char *const names[COUNT] = {
		[CHECK] = "__lsan_do_leak_check", [RECOVERABLE_CHECK] = "__lsan_do_recoverable_leak_check",
		[START] = "__libc_start_main", [EXIT] = "exit",
		[SIGACTION] = "sigaction",
	};
	int fd = target_module_fd(session->target, module);
	uint64_t vaddrs[COUNT];

	if (fd < 0 || elf_file_symbols(fd, names, COUNT, vaddrs) == 0)
		return;
	for (unsigned i = CHECK; i <= RECOVERABLE_CHECK; i++) {
		if (vaddrs[i] == 0)
			continue;
		guard_add_site(session, module, vaddrs[i], GUARD_LEAK_CHECK);
		session->checks_leaks = true;
	}
	if (vaddrs[START] != 0 && vaddrs[EXIT] != 0)
		guard_add_site(session, module, vaddrs[EXIT], GUARD_EXIT);
	/* The C library's, through which signal() and its kin go, too; a sanitizer's has this one behind it. */
	if (vaddrs[START] != 0 && vaddrs[SIGACTION] != 0)
		guard_add_site(session, module, vaddrs[SIGACTION], GUARD_SIGACTION);
}

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
	char path[64], *text;
	bool there = false;

	snprintf(path, sizeof(path), "/proc/%d/maps", session->target->memory_tid);
	if (file_read_text(path, MAPS_SPACE, &text, NULL) == 0) {
		there = strstr(text, "[uprobes]\n") != NULL;
		free(text);
	}
	return there;
}
