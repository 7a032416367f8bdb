/* Where a process tells the names of code that it makes while it runs: /tmp/perf-PID.map, and the jitdump file, jit-PID.dump,
 * of which it maps a page as code.  Both are as the process sees them: in its root folder, under its own number for itself. */
#ifndef ALLOCWATCH_DAEMON_GENERATED_H
#define ALLOCWATCH_DAEMON_GENERATED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* In the order in which they are asked; the first one that knows a name is believed. */
enum generated_kind { GENERATED_DUMP, GENERATED_MAP, GENERATED_KINDS };

struct generated {
	int pid;                             /* 0: nothing is known of the process */
	int inner_pid;                       /* in its own PID namespace */
	uid_t uid;
	uint64_t started_ns;                 /* CLOCK_REALTIME */
	char *dump_path;                     /* NULL: none was seen */
	int fds[GENERATED_KINDS];            /* the last ones that were opened, or -1; of use when the process is gone */
};

void generated_init(struct generated *generated);
void generated_fini(struct generated *generated);

/* Looks at a process that has started at this moment (field 22 of its stat, clock ticks); what was known before stays when
 * it is gone. */
void generated_look(struct generated *generated, int pid, uint64_t start_ticks);
/* The process maps a file as code. */
void generated_note_mapping(struct generated *generated, const char *path);

/* The places where a file may be, tried in turn: 0, 1, ...  Fills in the path and its kind and returns 0; -ENOENT: nothing is
 * to be looked for at this one; -ENOSPC: there are no more. */
#define GENERATED_PLACES (2 * GENERATED_KINDS)
int generated_place(const struct generated *generated, unsigned place, char *path, size_t space,
		    enum generated_kind *ret_kind);
enum generated_kind generated_place_kind(unsigned place);
/* Takes over a descriptor of a regular file found there: true, and it is kept in place of the one before.  False, and it is
 * closed, when the file is another user's, or is older than the process and so was left by another one. */
bool generated_take(struct generated *generated, enum generated_kind kind, int fd);

#endif
