/* What tallies counts, in a file that the test maps, too. */
#ifndef ALLOCWATCH_TESTS_TALLIES_H
#define ALLOCWATCH_TESTS_TALLIES_H

#define TALLIES_SIGNALS 65

struct tallies {
	int pid;                        /* set when it is ready */
	int count[TALLIES_SIGNALS];     /* of each signal */
	int value[TALLIES_SIGNALS];     /* that came with the last one */
};

#endif
