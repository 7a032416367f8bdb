/* A process that a live test watches: a victim of tests/victims, or any other program. */
#ifndef ALLOCWATCH_TESTS_SUBJECT_H
#define ALLOCWATCH_TESTS_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SUBJECT_LINE_MAX 1024
/* The uid of the tests that need an ordinary user: no account need exist. */
#define ORDINARY_UID 61234

struct tallies;

struct subject {
	pid_t pid;
	pid_t outer;                    /* the child of ours that it runs in, and that is waited for; 0: itself */
	int to, from;                   /* its stdin and stdout */
	char line[SUBJECT_LINE_MAX];    /* the last one read */
	char rest[SUBJECT_LINE_MAX];    /* read, but not yet a line */
	size_t rest_len;
};

/* Starts a program as the given user, with its arguments up to a NULL; stderr goes to the log.
 * program: a path.  Environment: this process's, with HOME set to the case's folder. */
struct subject *subject_start(uid_t uid, const char *const *argv);
/* The victims: path is relative to the build tree ("tests/victims/hammer"), the arguments end with
 * NULL; waits for its "R". */
struct subject *victim_start(const char *path, ...) __attribute__((sentinel));
/* The same as the ordinary user; needs root. */
struct subject *victim_start_ordinary(const char *path, ...) __attribute__((sentinel));

/* The same as any user, with the words up to a NULL; the program is a path that this user can execute. */
struct subject *victim_start_as(uid_t uid, const char *program, ...) __attribute__((sentinel));

void subject_send(struct subject *subject, char command);
/* Its next line, without the newline; fails when none comes in time. */
const char *subject_line(struct subject *subject);
/* Whether it writes something, or ends, within that time. */
bool subject_speaks(struct subject *subject, int ms);
/* Both. */
const char *subject_command(struct subject *subject, char command);
/* The number behind "name=" in its last line. */
long subject_tally(const struct subject *subject, const char *name);

/* Waits for its end; the wait status. */
int subject_wait(struct subject *subject);
/* A child of a process; 0: it has none. */
pid_t subject_child_of(pid_t pid);
/* Of one that has started its program in namespaces of its own, and waits for it: from now on this is that program. */
void subject_enter(struct subject *subject);
/* 'q', then its end, which must be exit status 0. */
void subject_quit(struct subject *subject);
/* Ends it by SIGKILL, for those that do not obey. */
void subject_kill(struct subject *subject);

/* The counts that a tests/victims/tallies with this argument keeps in it, mapped. */
struct tallies *subject_tallies(const char *path);

/* Drops to a user in a child process that will exec. */
void become_user(uid_t uid);
/* A file of the build tree where the ordinary user can read it, too (copied once per case). */
const char *public_copy(const char *path);
const char *public_copy_as(const char *path, const char *name);

#endif
