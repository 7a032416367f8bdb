/* The second file of tests/victims/twins. */
#ifndef ALLOCWATCH_TESTS_TWINS_H
#define ALLOCWATCH_TESTS_TWINS_H

void *twins_other(void);

#endif
