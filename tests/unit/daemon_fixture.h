/* A daemon of its own for each test, with the fake tracer, in a folder of its own; and targets that
 * only wait.  No sleeps: everything is polled for with a deadline. */
#ifndef ALLOCWATCH_TESTS_DAEMON_FIXTURE_H
#define ALLOCWATCH_TESTS_DAEMON_FIXTURE_H

#include "model/snapshot.h"
#include "varlink/client.h"

#include <check.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TEST_DEADLINE_S 30

extern char test_folder[64], test_socket[96];
extern pid_t test_daemon;
extern struct varlink_client *test_client;

void fixture_setup(void);               /* the folder, no daemon yet */
void fixture_teardown(void);            /* ends what still runs and removes the folder */

/* How the tracers started from now on behave; see fake_tracer.c. */
void tracer_mode(const char *mode);
/* Lines that tracers noted and that begin with this. */
int tracer_notes(const char *what);

/* Starts the daemon with further options (NULL-terminated) and connects test_client. */
void daemon_start(const char *const *options);
void daemon_start_default(void);
/* Becomes the daemon; with an empty test_socket, on the socket handed over. */
void daemon_exec(const char *const *options) __attribute__((noreturn));
/* Its exit status, or -signal; -1000 when it did not end in time. */
int daemon_wait(void);
void daemon_log_must_hold(const char *text);
bool daemon_log_holds(const char *text);

pid_t target_start(void);
void target_exit(pid_t pid, int status);        /* and waits for it */

/* Calls with parameters from json_pack (taken over).  The reply's parameters, to be freed: the call
 * must succeed. */
json_t *call_ok(const char *method, json_t *parameters);
/* The error's short name must be this; its parameters, to be freed. */
json_t *call_fails(const char *method, json_t *parameters, const char *error);
/* Any outcome: true on success. */
bool call_any(const char *method, json_t *parameters);
void attach_ok(pid_t pid);

/* Parameters: {"pid": pid}, {"snapshot": name}. */
json_t *pid_of(pid_t pid);
json_t *snap(const char *name);
void ok(const char *method, json_t *parameters);
void fails(const char *method, json_t *parameters, const char *error);
/* Takes a snapshot: its id, in a static buffer. */
const char *take(pid_t pid, const char *name);
size_t kept_count(void);
/* As `List` says it, in a static buffer; "" when it is not there. */
const char *state_of(pid_t pid);
void wait_for_state(pid_t pid, const char *state);
struct snapshot *get_snapshot(const char *name);
uint64_t live_bytes(const struct snapshot *snapshot);
bool names_function(const struct snapshot *snapshot, const char *function);
size_t resident_bytes(pid_t pid);
/* For wait_until(): a tracer has noted this. */
bool is_noted(void *what);

const char *text_of(const json_t *object, const char *key);
json_int_t number_of(const json_t *object, const char *key);
json_t *member(const json_t *object, const char *key);

/* Until `check` is true; fails the test after the deadline. */
void wait_until(bool (*check)(void *context), void *context, const char *what);
/* A bare connection; blocking. */
int raw_connect(void);
void raw_send(int sock, const void *data, size_t len);
/* Reads until a NUL; to be freed; NULL at the end of the connection or after the deadline. */
char *raw_receive(int sock);

/* A case whose tests have the fixture, and the whole program. */
TCase *fixture_case(Suite *suite, const char *name);
int fixture_run(const char *name, void (*add_tests)(Suite *suite));

#endif
