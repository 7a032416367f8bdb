/* What statistics need of a snapshot that never changes once it has its names: its places with the names that are
 * shown, which of them are in one group, and where each trace begins behind what is hidden.
 *
 * To make one costs about as much as a whole statistic; a snapshot that is asked more than once keeps it. */
#ifndef ALLOCWATCH_MODEL_INDEX_H
#define ALLOCWATCH_MODEL_INDEX_H

#include "model/hidden_rules.h"
#include "model/names.h"

/* The keys of single frames. */
enum index_key { INDEX_LINENO, INDEX_FILENAME, INDEX_FUNCTION, INDEX_DEFINITION, INDEX_OBJECT, INDEX_KEYS };

struct index_start {
	uint32_t node, location;              /* see struct walk */
};

/* Of a node with one place, as most have: that place, and where the walk goes on. */
struct index_step {
	uint32_t parent, place;               /* INDEX_SLOW: walk_step() knows */
};
#define INDEX_SLOW UINT32_MAX

struct snapshot_index {
	struct strtab *strings;               /* of the names: equal texts have equal ids */
	struct names names;                   /* all are made; one place more, the last, stands for a trace without frames */
	uint32_t *groups[INDEX_KEYS];         /* by place: the number of its group; NULL when not asked for */
	uint32_t group_count[INDEX_KEYS];
	struct index_start *starts;           /* by trace */
	uint32_t *first_places;               /* by trace: the first that is shown */
	struct index_step *steps;             /* by node; NULL when not asked for */
	uint64_t rules;                       /* the number of those that it was made by */
};

/* INDEX_KEYS: the key is none of single frames. */
enum index_key index_key_of(enum statistics_key key);

/* parts: bits of keys, and INDEX_STEPS.  0 or -ENOMEM.  Free with snapshot_index_free(). */
#define INDEX_STEPS (1u << INDEX_KEYS)
#define INDEX_ALL (2 * INDEX_STEPS - 1)
int snapshot_index_make(const struct snapshot *snapshot, unsigned parts, struct snapshot_index **ret);
size_t snapshot_index_memory(const struct snapshot_index *index);        /* NULL: 0 */

/* Makes one with all parts and leaves it with a snapshot that has its names and does not change any more; more threads than
 * one may do so at the same time.  The snapshot's memory has grown then: who has an account charges it anew.  0, also when
 * there was one, or -ENOMEM. */
int snapshot_index_keep(struct snapshot *snapshot);
/* Takes it away again; nobody else uses the snapshot. */
void snapshot_index_drop(struct snapshot *snapshot);
/* What it will take at most, about. */
size_t snapshot_index_estimate(const struct snapshot *snapshot);
static inline const struct snapshot_index *snapshot_index_any(const struct snapshot *snapshot)
{
	return __atomic_load_n(&snapshot->index, __ATOMIC_ACQUIRE);
}
/* The same, unless it was made by other rules than this thread sees (hidden_rules.h): what is hidden is left out of it. */
static inline const struct snapshot_index *snapshot_index_kept(const struct snapshot *snapshot)
{
	const struct snapshot_index *index = snapshot_index_any(snapshot);

	return index && index->rules == hidden_rules_number() ? index : NULL;
}

static inline uint32_t index_no_place(const struct snapshot_index *index)
{
	return index->names.place_count;
}

static inline const struct statistic_frame *index_frame(const struct snapshot_index *index, uint32_t place)
{
	return &index->names.frames[place];
}

static inline struct walk index_walk(const struct snapshot_index *index, size_t trace, bool show_runtime)
{
	const struct snapshot *snapshot = index->names.snapshot;
	struct walk walk = walk_start(snapshot, snapshot->traces.items[trace].stack);

	if (!show_runtime) {
		walk.node = index->starts[trace].node;
		walk.location = index->starts[trace].location;
	}
	return walk;
}

/* The next place outwards; false at the end.  The index has steps. */
static inline bool index_step(const struct snapshot_index *index, struct walk *walk, uint32_t *ret_place)
{
	const struct index_step *step = &index->steps[walk->node];
	struct place place;

	if (walk->location == 0 && step->place != INDEX_SLOW) {
		*ret_place = step->place;
		walk->node = step->parent;
		return true;
	}
	if (!walk_step(walk, &place))
		return false;
	*ret_place = names_place(&index->names, place);
	return true;
}

/* What a frame is grouped by, as a frame of its own; ids as the frame's.  Of a definition the function still has what
 * definition_function_length() leaves out. */
struct statistic_frame index_key_frame(enum index_key key, const struct statistic_frame *frame, uint32_t no_object);

#endif
