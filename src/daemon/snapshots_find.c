/* Which of the kept snapshots somebody means, and may see. */
#include "daemon/snapshots_private.h"

#include <string.h>

bool kept_is_seen(const struct kept *kept, struct viewer viewer)
{
	return viewer.uid == 0 || viewer.uid == kept->owner || (viewer.sees_roots && kept->owner == 0);
}

struct kept *snapshots_by_id(struct snapshots *snapshots, struct viewer viewer, const char *id)
{
	for (size_t i = 0; i < snapshots->list.count; i++) {
		struct kept *kept = snapshots->list.items[i];

		if (strcmp(kept->id, id) == 0)
			return kept_is_seen(kept, viewer) ? kept : NULL;
	}
	return NULL;
}

/* An exec ends a program as an exit does. */
bool kept_is_called(const struct kept *kept, const char *name)
{
	return strcmp(kept->name, name) == 0 || (strcmp(name, "exit") == 0 && strcmp(kept->name, "exec") == 0);
}

/* Ids and times both grow, but clocks are set back: the incarnation that was seen last, by id. */
struct kept *snapshots_by_name(struct snapshots *snapshots, struct viewer viewer, int pid, const char *name)
{
	for (size_t i = snapshots->list.count; i-- > 0;) {
		struct kept *kept = snapshots->list.items[i];

		if (kept->pid == pid && kept_is_called(kept, name) && kept_is_seen(kept, viewer))
			return kept;
	}
	return NULL;
}

struct kept *snapshots_last_of(struct snapshots *snapshots, struct viewer viewer, int pid)
{
	for (size_t i = snapshots->list.count; i-- > 0;) {
		if (snapshots->list.items[i]->pid == pid && kept_is_seen(snapshots->list.items[i], viewer))
			return snapshots->list.items[i];
	}
	return NULL;
}

json_t *snapshots_list(struct snapshots *snapshots, struct viewer viewer, int pid)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < snapshots->list.count; i++) {
		const struct kept *kept = snapshots->list.items[i];

		if ((pid != 0 && kept->pid != pid) || !kept_is_seen(kept, viewer))
			continue;
		if (json_array_append_new(list, kept_info(kept)) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}
