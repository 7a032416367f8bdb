/* Questions about a stopped task's signals. */
#ifndef ALLOCWATCH_TARGET_SIGNALS_H
#define ALLOCWATCH_TARGET_SIGNALS_H

#include "target/target.h"

/* A signal that its mask lets through is queued for it or for its process. */
bool task_signal_is_due(const struct task *task);
/* This signal is queued for the task itself. */
bool task_signal_is_pending(const struct task *task, int sig);
/* The program's disposition for it is to ignore it, said or by default. */
bool task_ignores_signal(const struct task *task, int sig);

#endif
