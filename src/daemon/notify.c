#include "daemon/notify.h"

#include <systemd/sd-daemon.h>

void notify_ready(void)
{
	sd_notify(0, "READY=1");
}

void notify_stopping(void)
{
	sd_notify(0, "STOPPING=1\nSTATUS=letting the traced processes go");
}

void notify_status(size_t targets, size_t clients, size_t snapshots)
{
	sd_notifyf(0, "STATUS=%zu processes traced, %zu clients, %zu snapshots kept", targets, clients, snapshots);
}
