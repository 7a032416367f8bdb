/* What runs the live tests: each case in a process of its own, with a deadline.
 *
 * A program is a table of cases.  A case fails by require() or by its deadline, passes by returning,
 * and skips by live_skip(), which is for "not permitted here" alone.  Everything that a case started
 * and left behind is killed after it.  One line per case: "PASS: name", "FAIL: name", "SKIP: name:
 * reason"; contrib/count-tests adds them up.
 *
 *   program [CASE...]      runs the named cases only; with --list, prints their names */
#ifndef ALLOCWATCH_TESTS_LIVE_H
#define ALLOCWATCH_TESTS_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_DEADLINE_S 120
#define LIVE_TORTURE_DEADLINE_S 3600

struct live_case {
	const char *name;
	void (*run)(void);
};

#define LIVE_CASE(function) { #function, function }

/* Returns the program's exit status: 0, 1 (one failed) or 77 (all were skipped). */
int live_main(int argc, char **argv, const struct live_case *cases, size_t count);

void live_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void live_fail_at(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4), noreturn));
/* A figure or a remark for the log. */
void live_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define live_fail(...) live_fail_at(__FILE__, __LINE__, __VA_ARGS__)
#define require(condition) \
	do { \
		if (!(condition)) \
			live_fail("this does not hold: %s", #condition); \
	} while (0)
#define require_equal(is, should) live_require_equal(__FILE__, __LINE__, #is, is, #should, should)
#define require_at_least(is, least) live_require_at_least(__FILE__, __LINE__, #is, is, #least, least)
/* text holds part */
#define require_text(text, part) live_require_text(__FILE__, __LINE__, text, part)

void live_require_equal(const char *file, int line, const char *is_text, long long is, const char *should_text,
			long long should);
void live_require_at_least(const char *file, int line, const char *is_text, long long is,
			   const char *least_text, long long least);
void live_require_text(const char *file, int line, const char *text, const char *part);

/* Of the case that runs. */
const char *live_case_name(void);
/* A folder that exists as long as the case runs, readable by everybody. */
const char *live_folder(void);
/* The same text each time for the same arguments; freed with the case. */
const char *live_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The folder of the build tree (ALLOCWATCH_BUILD, else the current one). */
const char *live_build(void);
/* That of the source tree: srcdir, as make check and make torture set it, else the current one.  Fails when it is another. */
const char *live_source(void);

/* How often to do it: `normal` in the suite, `torture` in its long form (make torture), and one part in $LIVE_SHARE of that
 * where there is not the time for all of it. */
unsigned int live_rounds(unsigned int normal, unsigned int torture);
/* A line of the table of make torture: what of this kind was done to targets, and how many lived. */
void live_survey(const char *kind, unsigned int cycles, unsigned int kills, unsigned int targets,
		 unsigned int survivors);

/* Kills and reaps all children of this process, and those that they leave to it when it is a subreaper. */
void live_end_children(void);

/* Polls until done(context) says so; false when the time is up. */
bool live_wait(bool (*done)(void *context), void *context, int timeout_ms);
/* The moments at which something happens must not be always the same; this is no waiting for something to be done, which
 * is live_wait(). */
void live_let_pass(uint64_t ns);
/* A number in [0, below): the seed is printed, and taken from LIVE_SEED when that is set. */
uint64_t live_random(uint64_t below);

#endif
