/* As ck_assert(), which writes down each place it passes, but free as long as it holds: for what is said a million times. */
#ifndef ALLOCWATCH_TESTS_REQUIRE_H
#define ALLOCWATCH_TESTS_REQUIRE_H

#include <check.h>

#define REQUIRE(claim) \
	do { \
		if (!(claim)) \
			ck_abort_msg("not true: %s", #claim); \
	} while (0)

#endif
