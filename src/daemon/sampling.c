#include "daemon/sampling.h"

#include "model/engine_kind.h"
#include "model/event.h"

const char *sampling_refusal(const struct wire_attach *message)
{
	if (message->engine == ENGINE_INT3)
		return "--engine int3 stops the program at every call all the same";
	if (message->release)
		return "a process that is let go of is not sampled";
	if (message->domains != 1u << DOMAIN_MALLOC)
		return "other domains than malloc are counted whole";
	if (message->allocators[0].domain != 0)
		return "what a described allocator asks malloc for would be left out";
	return NULL;
}

void sampling_by_default(struct wire_attach *message, uint64_t sample_bytes)
{
	if (!sampling_refusal(message))
		message->sample_bytes = sample_bytes;
}
