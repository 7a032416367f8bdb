#include "daemon/notify.h"

#include "base/clock.h"

#include <inttypes.h>
#include <systemd/sd-daemon.h>

void notify_ready(void)
{
	sd_notify(0, "READY=1");
}

/* Type=notify-reload of a newer systemd wants the time; for Type=notify it is READY=1 that ends it. */
void notify_reloading(void)
{
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=reading its configuration again",
		   (uint64_t)(clock_monotonic_ns() / NSEC_PER_USEC));
}

void notify_stopping(void)
{
	sd_notify(0, "STOPPING=1\nSTATUS=letting the traced processes go");
}

void notify_status(size_t targets, size_t clients, size_t snapshots)
{
	sd_notifyf(0, "STATUS=%zu processes traced, %zu clients, %zu snapshots kept", targets, clients, snapshots);
}
