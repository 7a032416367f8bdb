/* A file that another tracer has stored (refuge.h) is read again: by a process without a target and with the rights of
 * the user whose process it was, since a path in it may be any. */
#ifndef ALLOCWATCH_TRACER_RECALL_H
#define ALLOCWATCH_TRACER_RECALL_H

#include "tracer/link.h"

/* Answers as wire.h says. */
void recall_send(struct link *link, const struct wire_recall *request, int fd);

#endif
