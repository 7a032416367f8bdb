/* Reading the daemon's answers: what is missing or of another type counts as 0, "" or false. */
#ifndef ALLOCWATCH_CLI_ANSWER_H
#define ALLOCWATCH_CLI_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

uint64_t answer_number(const json_t *object, const char *key);
/* A number of seconds: 0 for one that is none, UINT64_MAX for one that is too large. */
uint64_t answer_duration_ns(const json_t *object, const char *key);
const char *answer_text(const json_t *object, const char *key);
bool answer_true(const json_t *object, const char *key);

/* "2024-05-31 17:02:09" of nanoseconds since the epoch, in local time. */
#define ANSWER_TIME_MAX 32
const char *answer_time(char text[ANSWER_TIME_MAX], uint64_t ns);

/* A table of SnapshotInfo objects on stdout; 0 or -ENOMEM. */
int answer_print_snapshots(const json_t *snapshots);

#endif
