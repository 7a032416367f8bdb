/* What a target's own tables take. */
#include "target/target.h"

#include "target/bp.h"
#include "target/jumps.h"
#include "target/resident_area.h"

static size_t area_memory(const struct resident_area *area)
{
	return sizeof(*area) +
	       area->header.entry_capacity * (sizeof(*area->entries) + sizeof(*area->slots) + sizeof(*area->slot_used));
}

size_t target_memory(const struct target *target)
{
	size_t bytes = sizeof(*target) + module_map_memory(&target->modules) + vec_memory(&target->module_fds) +
		       vec_memory(&target->slacks) + vec_memory(&target->mask_places) + vec_memory(&target->tasks) +
		       vec_memory(&target->breakpoints) + vec_memory(&target->jumps) +
		       target->tasks.count * sizeof(struct task) +
		       target->breakpoints.count * sizeof(struct breakpoint) +
		       target->bp_hash_size * sizeof(*target->bp_hash);

	for (const struct resident_area *area = target->areas; area; area = area->next)
		bytes += area_memory(area);
	return bytes;
}
