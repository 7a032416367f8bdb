/* All that is asked of a snapshot which somebody else has made and which was accepted. */
#ifndef ALLOCWATCH_TESTS_FUZZ_USE_SNAPSHOT_H
#define ALLOCWATCH_TESTS_FUZZ_USE_SNAPSHOT_H

#include "model/snapshot.h"

void fuzz_use_snapshot(const struct snapshot *snapshot);

#endif
