/* Rounds that can end in more than two ways: each is played in a process of its own, whose exit status says how it ended. */
#ifndef ALLOCWATCH_TESTS_ROUNDS_H
#define ALLOCWATCH_TESTS_ROUNDS_H

struct outcomes {
	const char *const *names;      /* the worst last: that of one whose process ended in any other way */
	unsigned count;
};

/* Ends the round, and says why when there is a format. */
void round_end(const struct outcomes *outcomes, unsigned outcome, const char *format, ...)
	__attribute__((format(printf, 3, 4), noreturn));
/* The outcome: play() ends by round_end().  What the round has started is killed after it. */
unsigned round_play(const struct outcomes *outcomes, void (*play)(const void *round), const void *round);

#endif
