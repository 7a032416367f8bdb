#include "daemon/sampling.h"

#include "model/allocators.h"
#include "model/engine_kind.h"
#include "model/event.h"
#include "ring/layout.h"

#include <stdlib.h>

/* Of what a ring's records have not; each text was parsed before. */
static bool asks_for_later_arguments(const struct wire_allocator *is)
{
	struct allocator allocator;
	char *reason = NULL;
	bool later = false;

	if (is->domain == 0 || allocator_parse(is->text, &allocator, &reason) < 0) {
		free(reason);
		return false;
	}
	for (size_t i = 0; !later && i < allocator.function_count; i++)
		later = allocator_function_arguments(&allocator.functions[i]) > RING_ARGUMENTS;
	return later;
}

const char *sampling_refusal(const struct wire_attach *message)
{
	if (message->engine == ENGINE_INT3)
		return "--engine int3 stops the program at every call all the same";
	if (message->domains != 1u << DOMAIN_MALLOC)
		return "other domains than malloc are counted whole";
	for (unsigned i = 0; i < WIRE_ALLOCATORS_MAX; i++) {
		if (asks_for_later_arguments(&message->allocators[i]))
			return "a described allocator is asked for its fourth argument, or a later one, which int3 alone sees";
	}
	return NULL;
}

void sampling_by_default(struct wire_attach *message, uint64_t sample_bytes)
{
	if (!sampling_refusal(message))
		message->sample_bytes = sample_bytes;
}
