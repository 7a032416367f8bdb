/* Whose rights decide which files are opened to name a process's frames: those of who has had it traced, and where that is
 * root, those of the process itself, which may have made the files that say what else is to be opened. */
#ifndef ALLOCWATCH_DAEMON_FILE_USER_H
#define ALLOCWATCH_DAEMON_FILE_USER_H

#include "tracer/wire.h"

#include <stdint.h>

struct file_user {
	int pid;                       /* for the log */
	uint32_t owner;                /* who has had it traced */
	struct wire_identity identity; /* whom to become; none: the daemon's own user */
};

/* Nobody, who may read what everybody may; for a daemon that is not root's its own user. */
void file_user_of_nobody(struct file_user *user);
/* Who asks for an attach. */
void file_user_of_attach(const struct wire_attach *attach, int pid, struct file_user *ret);
/* Only the uid is known. */
void file_user_of_owner(uint32_t uid, int pid, struct file_user *ret);
/* The same number for the same rights. */
uint64_t file_user_key(const struct file_user *user);

#endif
