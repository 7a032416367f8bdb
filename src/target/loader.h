/* The dynamic loader's hook: the empty function that it calls whenever its list of objects changes,
 * which debuggers put a breakpoint on (r_brk of struct r_debug, <link.h>). */
#ifndef ALLOCWATCH_TARGET_LOADER_H
#define ALLOCWATCH_TARGET_LOADER_H

#include "target/bp.h"

struct loader_hook {
	raddr address;
	uint32_t module;
	uint8_t text[ARCH_WINDOW_MAX];         /* the instructions there, and what lies behind them */
	size_t text_len;
};

/* By the loader's own word or by its name; reads files, and so is best asked while nobody is held.  Works right after exec too, when
 * the loader has not run yet.  1; 0: the program has no loader (static); negative errno. */
int loader_find_hook(struct target *target, struct loader_hook *ret);
/* Prepares the breakpoint on the hook; 0 or negative errno. */
int loader_prepare_hook(struct target *target, const struct loader_hook *hook, struct breakpoint **ret_bp,
			const char **ret_reason);

#endif
