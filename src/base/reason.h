/* Why something failed, in words for whoever asked for it. */
#ifndef ALLOCWATCH_BASE_REASON_H
#define ALLOCWATCH_BASE_REASON_H

/* Writes a sentence into *ret_reason, which the caller frees.  Returns `error`, or -ENOMEM with *ret_reason NULL. */
int reason_set(char **ret_reason, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
