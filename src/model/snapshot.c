#include "model/snapshot.h"

#include "model/index.h"

#include <stdlib.h>
#include <string.h>

static int add_roots(struct snapshot *snapshot)
{
	struct snapshot_frame *none;

	if (!vec_push(&snapshot->nodes))
		return -1;
	none = vec_push(&snapshot->frames);
	if (!none)
		return -1;
	none->frame.module = MODULE_NONE;
	return 0;
}

struct snapshot *snapshot_new(void)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (!snapshot)
		return NULL;
	snapshot->references = 1;
	snapshot->name = strdup("");
	snapshot->command = strdup("");
	snapshot->exe = strdup("");
	snapshot->strings = strtab_new();
	if (!snapshot->name || !snapshot->command || !snapshot->exe || !snapshot->strings ||
	    add_roots(snapshot) < 0) {
		snapshot_put(snapshot);
		return NULL;
	}
	return snapshot;
}

struct snapshot *snapshot_ref(struct snapshot *snapshot)
{
	snapshot->references++;
	return snapshot;
}

void snapshot_put(struct snapshot *snapshot)
{
	if (!snapshot || --snapshot->references > 0)
		return;
	if (snapshot->account)
		*snapshot->account -= snapshot->charged;
	snapshot_index_free(snapshot->index);
	free(snapshot->id);
	free(snapshot->name);
	free(snapshot->command);
	free(snapshot->exe);
	strtab_free(snapshot->strings);
	vec_fini(&snapshot->modules);
	vec_fini(&snapshot->frames);
	vec_fini(&snapshot->locations);
	vec_fini(&snapshot->nodes);
	vec_fini(&snapshot->traces);
	vec_fini(&snapshot->blocks);
	free(snapshot);
}

static size_t text_memory(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

size_t snapshot_memory(const struct snapshot *snapshot)
{
	return sizeof(*snapshot) + text_memory(snapshot->id) + text_memory(snapshot->name) +
	       text_memory(snapshot->command) + text_memory(snapshot->exe) + strtab_memory(snapshot->strings) +
	       vec_memory(&snapshot->modules) + vec_memory(&snapshot->frames) +
	       vec_memory(&snapshot->locations) + vec_memory(&snapshot->nodes) +
	       vec_memory(&snapshot->traces) + vec_memory(&snapshot->blocks) +
	       snapshot_index_memory(snapshot_index_any(snapshot));
}

void snapshot_charge(struct snapshot *snapshot, uint64_t *account)
{
	if (snapshot->account)
		*snapshot->account -= snapshot->charged;
	snapshot->account = account;
	snapshot->charged = snapshot_memory(snapshot);
	*account += snapshot->charged;
}
