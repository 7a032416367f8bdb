/* What a test and the tracer with faults share: which call fails, when and how, and how often each was made.
 *
 * tests/faults/tracer is the tracer's own objects, linked so that the calls below go through tests/faults/shim.c.  Which file
 * to map stands in FAULTS_VARIABLE; without it nothing is counted and nothing fails. */
#ifndef ALLOCWATCH_TESTS_FAULTS_H
#define ALLOCWATCH_TESTS_FAULTS_H

#include <stdint.h>

#define FAULTS_VARIABLE "ALLOCWATCH_FAULTS"
#define FAULTS_ERRORS 3            /* ways in which one call fails */
#define FAULT_SHORT (-1)           /* less than was asked for is read or written */
#define FAULT_LATE_MS 3300         /* longer than is waited for a call of the target's (INJECT_DEADLINE_MS) */

/* The ways: X(name, text, errors), most plausible first; 0: no further one.  Those of ptrace are named for the request. */
#define FAULT_CALLS(X) \
	X(PTRACE_SEIZE, "ptrace(SEIZE)", EPERM, ESRCH, EIO) \
	X(PTRACE_INTERRUPT, "ptrace(INTERRUPT)", ESRCH, EIO, 0) \
	X(PTRACE_CONT, "ptrace(CONT)", ESRCH, EIO, 0) \
	X(PTRACE_SYSCALL, "ptrace(SYSCALL)", ESRCH, EIO, 0) \
	X(PTRACE_LISTEN, "ptrace(LISTEN)", ESRCH, EIO, 0) \
	X(PTRACE_DETACH, "ptrace(DETACH)", ESRCH, EIO, 0) \
	X(PTRACE_GETREGS, "ptrace(GETREGS)", ESRCH, EIO, 0) \
	X(PTRACE_SETREGS, "ptrace(SETREGS)", ESRCH, EIO, 0) \
	X(PTRACE_POKEUSER, "ptrace(POKEUSER)", ESRCH, EIO, 0) \
	X(PTRACE_PEEKTEXT, "ptrace(PEEKTEXT)", EIO, ESRCH, 0) \
	X(PTRACE_POKETEXT, "ptrace(POKETEXT)", EIO, ESRCH, 0) \
	X(PTRACE_GETSIGMASK, "ptrace(GETSIGMASK)", ESRCH, EIO, 0) \
	X(PTRACE_SETSIGMASK, "ptrace(SETSIGMASK)", ESRCH, EIO, 0) \
	X(PTRACE_GETSIGINFO, "ptrace(GETSIGINFO)", ESRCH, EINVAL, 0) \
	X(PTRACE_SETSIGINFO, "ptrace(SETSIGINFO)", ESRCH, EINVAL, 0) \
	X(PTRACE_GETEVENTMSG, "ptrace(GETEVENTMSG)", ESRCH, EIO, 0) \
	X(PTRACE_SETOPTIONS, "ptrace(SETOPTIONS)", ESRCH, EINVAL, EPERM) \
	X(WAITID, "waitid", EINTR, ECHILD, EINVAL) \
	X(PROCESS_VM_READV, "process_vm_readv", EPERM, EFAULT, FAULT_SHORT) \
	X(PREAD, "pread", EIO, FAULT_SHORT, ENOMEM) \
	X(PWRITE, "pwrite", EIO, FAULT_SHORT, ENOMEM) \
	X(PIDFD_OPEN, "pidfd_open", EMFILE, ESRCH, ENOMEM) \
	X(KCMP, "kcmp", EPERM, ESRCH, ENOMEM) \
	X(OPEN, "open", EMFILE, ENOENT, EACCES) \
	X(OPENDIR, "opendir", EMFILE, ENOENT, EACCES) \
	X(READDIR, "readdir", EIO, ENOENT, 0) \
	X(READLINK, "readlink", EACCES, ENOENT, EIO) \
	X(STAT, "stat", EACCES, EIO, 0) \
	X(FSTAT, "fstat", EIO, 0, 0) \
	X(READ, "read", EIO, FAULT_SHORT, ESRCH) \
	X(MMAP, "mmap", ENOMEM, EACCES, 0) \
	X(FORK, "fork", EAGAIN, ENOMEM, 0) \
	X(MEMFD_CREATE, "memfd_create", EMFILE, ENOMEM, 0) \
	X(FCNTL, "fcntl", EPERM, EMFILE, 0) \
	X(WRITE, "write", ENOSPC, FAULT_SHORT, EIO) \
	X(SENDMSG, "sendmsg", ENOBUFS, EPIPE, EMSGSIZE) \
	X(RECVMSG, "recvmsg", ENOMEM, ECONNRESET, EINTR) \
	X(PRCTL, "prctl", EINVAL, 0, 0) \
	X(SETIDS, "setresuid, setresgid, setgroups", EPERM, EAGAIN, 0) \
	X(SOCKETPAIR, "socketpair", EMFILE, 0, 0) \
	X(PIPE, "pipe2", EMFILE, 0, 0) \
	X(EVENTFD, "eventfd, signalfd", EMFILE, 0, 0) \
	X(THREAD, "pthread_create", EAGAIN, 0, 0) \
	X(MALLOC, "malloc", ENOMEM, 0, 0) \
	X(CALLOC, "calloc", ENOMEM, 0, 0) \
	X(REALLOC, "realloc", ENOMEM, 0, 0) \
	X(STRDUP, "strdup", ENOMEM, 0, 0) \
	X(LIBELF, "libelf", ENOMEM, 0, 0) \
	X(LIBDW, "libdw", ENOMEM, 0, 0) \
	X(LIBUNWIND, "libunwind", ENOMEM, 0, 0)

enum fault_call {
#define FAULT_NAME(name, text, a, b, c) FAULT_##name,
	FAULT_CALLS(FAULT_NAME)
#undef FAULT_NAME
	FAULT_CALL_COUNT
};

enum fault_kind {
	FAULT_NONE,
	FAULT_ONCE,                    /* that call alone */
	FAULT_FROM_THEN,               /* that and all later ones of its name */
	FAULT_SEGV, FAULT_ABORT,       /* the tracer ends there */
	FAULT_LATE,                    /* that call is made, and no stop is seen for FAULT_LATE_MS after it */
};

struct faults {
	uint32_t armed;                /* else nothing is counted, nothing fails */
	uint32_t in_healers;           /* `--heal`, `--stand-by`, else in tracers */
	uint32_t kind, call;
	uint32_t at;                   /* which of these calls, from 1 */
	int32_t error;                 /* errno or FAULT_SHORT */
	uint32_t hit;                  /* how often it did fail */
	uint32_t counts[FAULT_CALL_COUNT];
};

#endif
