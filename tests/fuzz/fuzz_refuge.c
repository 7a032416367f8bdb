/* What a tracer has stored when its daemon was gone, in a file that whoever owns the process may have changed since:
 * read again, and the files that it names looked for. */
#define _GNU_SOURCE              /* F_GET_SEALS, memmem */
#include "fuzz.h"
#include "tracer.h"

#include "tracer/recall.h"
#include "tracer/session.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned sent, failed;

/* In the place of the line to the daemon: what is said there must be what the daemon accepts. */
void link_send(struct link *link, const void *message, size_t len, int fd)
{
	const struct wire_head *head = message;

	(void)link;
	MUST(wire_check(message, len, 1) == 0);
	MUST(head->type == WIRE_MODULE || head->type == WIRE_SNAPSHOT_READY);
	if (head->type == WIRE_SNAPSHOT_READY) {
		MUST((fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE) != 0);
		sent++;
	}
	close(fd);
}

void session_fail(struct link *link, uint32_t serial, pid_t pid, enum wire_failure failure, pid_t other,
		  const char *format, ...)
{
	(void)link;
	(void)serial;
	(void)pid;
	(void)other;
	MUST(failure == FAILURE_INTERNAL && strcmp(format, "%s") == 0);
	failed++;
}

void fuzz_refuge_run(const uint8_t *data, size_t len)
{
	const struct wire_recall request = { .head = { WIRE_RECALL, 7, 4242, sizeof(request) } };
	int fd = fuzz_file(data, len);

	sent = failed = 0;
	recall_send(NULL, &request, fd);
	close(fd);
	MUST(sent + failed == 1);
	if (sent)
		fuzz_reached(0);
	/* Any path that begins like one. */
	if (sent && memmem(data, len, "/", 1))
		fuzz_reached(1);
}
