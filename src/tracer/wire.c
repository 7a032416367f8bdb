#include "tracer/wire.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* What is checked beyond type, direction and length; data is a whole message of its type. */
typedef bool (*body_check)(const void *data);

static bool text_ends(const char *text, size_t space)
{
	return memchr(text, '\0', space) != NULL;
}

static bool snapshot_request_valid(const void *data)
{
	const struct wire_snapshot_request *m = data;

	return m->with_blocks <= 1;
}

static bool allocators_valid(const struct wire_allocator allocators[WIRE_ALLOCATORS_MAX])
{
	for (unsigned i = 0; i < WIRE_ALLOCATORS_MAX; i++) {
		if (allocators[i].domain > DOMAIN_MAX || (allocators[i].domain > 0 && allocators[i].domain < DOMAIN_USER) ||
		    !text_ends(allocators[i].text, sizeof(allocators[i].text)))
			return false;
	}
	return true;
}

static bool attach_valid(const void *data)
{
	const struct wire_attach *m = data;

	return allocators_valid(m->allocators) && m->from_exec <= 1 && m->follow_forks <= 1 && m->as_owner <= 1 &&
	       m->owner_group_count <= WIRE_GROUPS_MAX && m->engine <= ENGINE_RING && m->ptrace <= PTRACE_RELEASE &&
	       m->release_or_fail <= 1;
}

static bool recall_valid(const void *data)
{
	const struct wire_recall *m = data;

	return m->as_owner <= 1 && m->without_files <= 1;
}

static bool open_valid(const void *data)
{
	const struct wire_open *m = data;

	return m->identity.as_other <= 1 && m->identity.group_count <= WIRE_GROUPS_MAX && m->names <= 1 && m->path[0] == '/' &&
	       text_ends(m->path, sizeof(m->path));
}

static bool opened_valid(const void *data)
{
	return ((const struct wire_opened *)data)->result <= 0;
}

static bool attached_valid(const void *data)
{
	const struct wire_attached *m = data;

	return text_ends(m->exe, sizeof(m->exe)) && text_ends(m->command, sizeof(m->command)) &&
	       text_ends(m->warning, sizeof(m->warning)) && text_ends(m->hold_reason, sizeof(m->hold_reason));
}

static bool failed_valid(const void *data)
{
	const struct wire_failed *m = data;

	return text_ends(m->text, sizeof(m->text)) && m->failure >= FAILURE_NO_SUCH_PROCESS &&
	       m->failure <= FAILURE_INTERNAL && m->other_tracer >= 0;
}

/* A warning for the log has no failure behind it, so any number will do there. */
static bool log_valid(const void *data)
{
	const struct wire_failed *m = data;

	return text_ends(m->text, sizeof(m->text));
}

static bool module_valid(const void *data)
{
	const struct wire_module *m = data;

	return text_ends(m->path, sizeof(m->path)) && m->build_id_len <= sizeof(m->build_id) &&
	       m->module < MODULES_MAX;
}

static bool forked_valid(const void *data)
{
	const struct wire_forked *m = data;

	return m->child > 0 && m->tracer > 0;
}

static bool snapshot_ready_valid(const void *data)
{
	const struct wire_snapshot_ready *m = data;

	return m->reason <= SNAPSHOT_LOST;
}

static bool status_valid(const void *data)
{
	const struct wire_status *m = data;

	return text_ends(m->crash_unsafe_reason, sizeof(m->crash_unsafe_reason)) && m->exact <= 1 &&
	       m->crash_safe <= 1 && m->stopped <= 1 && m->released <= 1 && m->engine <= ENGINE_RING &&
	       text_ends(m->engine_reason, sizeof(m->engine_reason)) && text_ends(m->hold_reason, sizeof(m->hold_reason));
}

static bool blocks_valid(const void *data)
{
	const struct wire_blocks *m = data;

	return m->count <= WIRE_BLOCKS_MAX;
}

static bool misuses_valid(const void *data)
{
	const struct wire_misuses *m = data;

	if (m->count > MISUSES_MAX)
		return false;
	for (uint32_t i = 0; i < m->count; i++) {
		if (m->misuse[i].kind >= MISUSE_KINDS)
			return false;
	}
	return true;
}

static bool detached_valid(const void *data)
{
	const struct wire_detached *m = data;

	return text_ends(m->text, sizeof(m->text)) && m->clean <= 1;
}

static const struct kind {
	uint32_t type;
	bool from_tracer;
	size_t size;
	body_check valid;        /* NULL: nothing more to check */
} kinds[] = {
	{ WIRE_ATTACH, false, sizeof(struct wire_attach), attach_valid },
	{ WIRE_SNAPSHOT, false, sizeof(struct wire_snapshot_request), snapshot_request_valid },
	{ WIRE_STATUS, false, sizeof(struct wire_head), NULL },
	{ WIRE_BLOCK, false, sizeof(struct wire_block_request), NULL },
	{ WIRE_MISUSES, false, sizeof(struct wire_head), NULL },
	{ WIRE_CLEAR, false, sizeof(struct wire_head), NULL },
	{ WIRE_RESET_PEAK, false, sizeof(struct wire_head), NULL },
	{ WIRE_DETACH, false, sizeof(struct wire_head), NULL },
	{ WIRE_SET_ASIDE, false, sizeof(struct wire_head), NULL },
	{ WIRE_ALIVE, false, sizeof(struct wire_head), NULL },
	{ WIRE_REFUGE, false, sizeof(struct wire_head), NULL },
	{ WIRE_RECALL, false, sizeof(struct wire_recall), recall_valid },
	{ WIRE_HEAL, false, sizeof(struct wire_head), NULL },
	{ WIRE_STAND_BY, false, sizeof(struct wire_head), NULL },
	{ WIRE_OPEN, false, sizeof(struct wire_open), open_valid },
	{ WIRE_ATTACHED, true, sizeof(struct wire_attached), attached_valid },
	{ WIRE_EXECED, true, sizeof(struct wire_attached), attached_valid },
	{ WIRE_FAILED, true, sizeof(struct wire_failed), failed_valid },
	{ WIRE_MODULE, true, sizeof(struct wire_module), module_valid },
	{ WIRE_SNAPSHOT_READY, true, sizeof(struct wire_snapshot_ready), snapshot_ready_valid },
	{ WIRE_STATUS_REPLY, true, sizeof(struct wire_status), status_valid },
	{ WIRE_BLOCKS, true, sizeof(struct wire_blocks), blocks_valid },
	{ WIRE_MISUSES_REPLY, true, sizeof(struct wire_misuses), misuses_valid },
	{ WIRE_DONE, true, sizeof(struct wire_head), NULL },
	{ WIRE_DETACHED, true, sizeof(struct wire_detached), detached_valid },
	{ WIRE_TARGET_GONE, true, sizeof(struct wire_gone), NULL },
	{ WIRE_HEARTBEAT, true, sizeof(struct wire_heartbeat), NULL },
	{ WIRE_FORKED, true, sizeof(struct wire_forked), forked_valid },
	{ WIRE_LOG, true, sizeof(struct wire_failed), log_valid },
	{ WIRE_OPENED, true, sizeof(struct wire_opened), opened_valid },
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

_Static_assert(sizeof(struct wire_attached) <= WIRE_MESSAGE_MAX &&
	       sizeof(struct wire_module) <= WIRE_MESSAGE_MAX &&
	       sizeof(struct wire_blocks) <= WIRE_MESSAGE_MAX, "WIRE_MESSAGE_MAX is too small");

static const struct kind *find_kind(uint32_t type, bool from_tracer)
{
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (kinds[i].type == type)
			return kinds[i].from_tracer == from_tracer ? &kinds[i] : NULL;
	}
	return NULL;
}

int wire_check(const void *data, size_t len, int from_tracer)
{
	const struct kind *kind;
	struct wire_head head;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, data, sizeof(head));
	kind = find_kind(head.type, from_tracer != 0);
	if (!kind || len != kind->size || head.length != len)
		return -EBADMSG;
	return !kind->valid || kind->valid(data) ? 0 : -EBADMSG;
}
