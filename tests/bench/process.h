/* Processes that a benchmark starts and watches; whatever fails ends the benchmark with a message. */
#ifndef ALLOCWATCH_BENCH_PROCESS_H
#define ALLOCWATCH_BENCH_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#define CPU_ANY (-1)

struct victim;

void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* A file of the build tree, where the benchmark is run. */
const char *bench_path(const char *relative);
/* Lets the calling thread run on one CPU, or on all that it may. */
void pin_to(int cpu);
/* Two CPUs this process may use; fails when there is but one. */
void two_cpus(int *ret_first, int *ret_second);

#define BENCH_THREADS_MAX 4096
/* Seizes all threads of a process by ptrace, as they are listed once; how many these are, one at least. */
size_t bench_seize_all(pid_t target, pid_t threads[BENCH_THREADS_MAX]);

/* Starts a program of the build tree on a CPU and waits for its "R".  The arguments end with NULL. */
struct victim *victim_start(int cpu, const char *program, ...) __attribute__((sentinel));
/* The same; argv[0] is the program. */
struct victim *victim_start_by(int cpu, const char *const *argv);
pid_t victim_pid(const struct victim *victim);
void victim_send(struct victim *victim, char command);
/* Sends the command and waits for the line that answers. */
void victim_command(struct victim *victim, char command);
/* The number behind "name=" in the last answer. */
long victim_tally(const struct victim *victim, const char *name);
/* 'q', and its end, which must be exit status 0. */
void victim_quit(struct victim *victim);

#endif
