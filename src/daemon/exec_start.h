/* ExecStart= of a service with the shim (shim/shim.h) before each command: as systemd tells the commands on the bus, and as
 * a drop-in writes them.  Pure: no bus, no files. */
#ifndef ALLOCWATCH_DAEMON_EXEC_START_H
#define ALLOCWATCH_DAEMON_EXEC_START_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>

/* Of all commands of one service; systemd takes no longer line than 1 MiB. */
#define EXEC_COMMANDS_MAX 64
#define EXEC_START_TEXT_MAX (256u << 10)

enum exec_flag {
	EXEC_NO_ENV_EXPAND = 1 << 0,   /* ":" */
	EXEC_IGNORE_FAILURE = 1 << 1,  /* "-" */
	EXEC_PRIVILEGED = 1 << 2,      /* "+" */
	EXEC_NO_SETUID = 1 << 3,       /* "!" */
	EXEC_AMBIENT = 1 << 4,         /* "!!" */
};

/* One command: specifiers are expanded, variables ("$NAME") are not. */
struct exec_command {
	char *path;
	char **argv;                   /* argv[0] is what the program gets; NULL-terminated */
	unsigned flags;
};

struct exec_start {
	VEC_OF(struct exec_command) commands;
};

void exec_start_fini(struct exec_start *start);
/* A word of systemd's property ExecStartEx ("ignore-failure") as a flag.  -EINVAL: it is none of these. */
int exec_flag_parse(const char *word, unsigned *ret_flag);

/* Whether a command of it is the shim already. */
bool exec_start_has_shim(const struct exec_start *start, const char *shim);
/* The text of a drop-in for `unit`: the same commands, each through the shim.  allow_shim: a line that lets the shim be executed
 * where NoExecPaths= forbids all.  0 and *ret_text, to be freed; -E2BIG: longer than EXEC_START_TEXT_MAX; -ENOMEM. */
int exec_start_drop_in(const struct exec_start *start, const char *unit, const char *shim, bool allow_shim, char **ret_text);

#endif
