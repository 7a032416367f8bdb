/* The program that stands before a service's own in ExecStart= for `watch --from-start`: it waits to be traced and then
 * executes the service's program in its place, which so is traced from its first instruction.
 *
 *	allocwatch-shim PROGRAM ARGV0 [ARG...]
 *
 * It changes nothing that an exec hands on: process id, signals, limits, descriptors, environment.  It links no library
 * (a service's sandbox may hide them), and makes only system calls that every program makes when it starts. */
#ifndef ALLOCWATCH_SHIM_SHIM_H
#define ALLOCWATCH_SHIM_SHIM_H

#define SHIM_NAME "allocwatch-shim"
#define SHIM_PATH PKGLIBEXECDIR "/" SHIM_NAME
/* Nobody traces it by then: it executes the program, which is then not traced from its start. */
#define SHIM_WAIT_MS 5000
#define SHIM_LOOK_MS 1
/* The program cannot be executed: systemd's own status for that (EXIT_EXEC). */
#define SHIM_CANNOT_EXECUTE 203
/* Called without a program. */
#define SHIM_WRONG_USAGE 2
/* What it is built for, as systemd names it. */
#define SHIM_ARCHITECTURE "x86-64"
/* What it asks of the kernel, as system call filters name it. */
#define SHIM_SYSCALLS "openat", "read", "close", "clock_gettime", "clock_nanosleep", "execve", "exit_group"

#endif
