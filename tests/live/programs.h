/* Programs that nobody here wrote, started for a live test, and their clients. */
#ifndef ALLOCWATCH_TESTS_PROGRAMS_H
#define ALLOCWATCH_TESTS_PROGRAMS_H

#include <stddef.h>
#include <sys/types.h>

struct subject;

/* work makes it allocate, and keep at least so many bytes. */
struct program {
	struct subject *subject;
	void (*work)(struct program *program);
	long long kept_bytes;
	const char *object;             /* where most of its frames are */
	int connection;
	const char *socket;
	int requests;
};

/* The first of these paths, up to a NULL, that can be executed; fails when none can. */
const char *program_find(const char *const *candidates);

/* socket is set by the caller, in a folder that the user may write to.  connection is open afterwards. */
void program_start_redis(struct program *program, uid_t uid);
void program_start_nginx(struct program *program);
/* Says R when it is ready. */
void program_start_python(struct program *program, const char *script);

/* To a local socket; waits until somebody listens. */
int program_connect(const char *path);
void program_send(int connection, const char *data, size_t len);
/* Reads until so many line ends came. */
void program_expect_lines(int connection, int lines);
/* Sets a key of redis to a value of so many bytes. */
void program_set_key(struct program *redis, int key, int bytes);
/* Asks nginx for its page, on a connection that stays open. */
void program_get_page(int connection);

#endif
