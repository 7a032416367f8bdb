/* What the service manager is told; nothing when there is none. */
#ifndef ALLOCWATCH_DAEMON_NOTIFY_H
#define ALLOCWATCH_DAEMON_NOTIFY_H

#include <stddef.h>

void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);
void notify_status(size_t targets, size_t clients, size_t snapshots);

#endif
