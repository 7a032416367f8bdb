/* What a session answers about frees that should not have been. */
#include "tracer/session.h"
#include "tracer/snapshot.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

/* As if each stack had made a block. */
static int add_stack(struct heap *heap, uint32_t stack, raddr address)
{
	struct alloc_event event = { .kind = ALLOC_BORN, .stack = stack, .address = address, .size = 1 };

	return stack == STACK_ROOT ? 0 : heap_apply(heap, &event);
}

static uint32_t trace_of(const struct heap *heap, uint32_t stack)
{
	return stack == STACK_ROOT ? UINT32_MAX : (uint32_t)heap_trace_index(heap, stack, DOMAIN_MALLOC);
}

static int misuses_image(struct session *session, struct wire_misuses *answer, int *ret_fd)
{
	struct heap *heap = heap_new(NULL, true, clock_monotonic_ns());
	int r = heap ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < answer->count; i++) {
		const struct misuse *misuse = &session->misuses.items[i];

		r = add_stack(heap, misuse->freed_stack, (2 * i + 1) * 16);
		if (r == 0)
			r = add_stack(heap, misuse->made_stack, (2 * i + 2) * 16);
	}
	for (uint32_t i = 0; r == 0 && i < answer->count; i++) {
		answer->misuse[i].freed_trace = trace_of(heap, session->misuses.items[i].freed_stack);
		answer->misuse[i].made_trace = trace_of(heap, session->misuses.items[i].made_stack);
	}
	if (r == 0)
		r = snapshot_image(session, heap, false, ret_fd);
	heap_free(heap);
	return r;
}

void session_send_misuses(struct session *session, uint32_t serial)
{
	const struct misuses *misuses = &session->misuses;
	struct wire_misuses answer = { .head = { WIRE_MISUSES_REPLY, serial, session->target->pid, sizeof(answer) },
				       .count = misuses->count, .more = misuses->more };
	int fd, r;

	for (uint32_t i = 0; i < misuses->count; i++) {
		answer.misuse[i].address = misuses->items[i].address;
		answer.misuse[i].size = misuses->items[i].size;
		answer.misuse[i].count = misuses->items[i].count;
		answer.misuse[i].kind = misuses->items[i].kind;
		answer.misuse[i].made_form = misuses->items[i].made_form;
		answer.misuse[i].freed_forms = misuses->items[i].freed_forms;
		answer.misuse[i].thread = (uint32_t)misuses->items[i].tid;
	}
	r = misuses_image(session, &answer, &fd);
	if (r < 0)
		session_fail(session->link, serial, session->target->pid, FAILURE_INTERNAL, 0,
			     "cannot write the stacks of wrong frees: %s", strerror(-r));
	else
		link_send(session->link, &answer, sizeof(answer), fd);
}
