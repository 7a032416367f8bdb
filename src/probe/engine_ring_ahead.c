/* When the reader of a ring gets helpers, and what they are told of the process. */
#define _GNU_SOURCE
#include "probe/engine_private.h"

#include "model/engine_kind.h"
#include "target/rights.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#define OTHERS 2                           /* processors that are the program's and the reader's */

/* Where this process may run, before it chose a processor of its own (tracer/placement.h). */
static cpu_set_t permitted;
static bool permitted_known;

static unsigned most_helpers(void)
{
	unsigned processors;

	if (!permitted_known)
		permitted_known = sched_getaffinity(0, sizeof(permitted), &permitted) == 0;
	processors = permitted_known ? (unsigned)CPU_COUNT(&permitted) : 0;
	if (processors <= OTHERS)
		return 0;
	return processors - OTHERS < ENGINE_AUTO_HELPERS_MAX ? processors - OTHERS : ENGINE_AUTO_HELPERS_MAX;
}

void engine_ring_want_helpers(struct engine *engine)
{
	engine->ring.most_helpers = most_helpers();
	if (engine->ring.options.readers > 0)
		engine->ring.most_helpers = engine->ring.options.readers - 1;
	if (engine->ring.most_helpers > RING_AHEAD_HELPERS_MAX)
		engine->ring.most_helpers = RING_AHEAD_HELPERS_MAX;
}

/* In its own thread.  It needs no rights; as root it keeps them, since all threads have to be able to when the process becomes another
 * user's. */
static void begins(void)
{
	prctl(PR_SET_NAME, ENGINE_HELPER_NAME);
	if (permitted_known)
		sched_setaffinity(0, sizeof(permitted), &permitted);
	if (geteuid() != 0)
		rights_drop();
}

static int module_fd(void *context, uint32_t module)
{
	const struct engine *engine = context;

	return target_module_fd(engine->target, module);
}

static void find_patched(void *context, bool *modules, size_t count)
{
	const struct target *target = ((const struct engine *)context)->target;

	for (size_t i = 0; i < target->breakpoints.count; i++) {
		if (target->breakpoints.items[i]->module < count)
			modules[target->breakpoints.items[i]->module] = true;
	}
	for (size_t i = 0; i < target->jumps.count; i++) {
		if (target->jumps.items[i].module < count)
			modules[target->jumps.items[i].module] = true;
	}
}

static int memory_fd(void *context)
{
	return ((const struct engine *)context)->target->mem_fd;
}

static bool begin_helper(struct engine *engine)
{
	const struct ring_ahead_options options = {
		.world = { &engine->target->modules, engine->unwinder, &engine->target->text_changes, module_fd, find_patched, memory_fd,
			   engine },
		.max_frames = engine->max_frames, .begins = begins, .eager = engine->ring.options.readers > 0,
	};

	if (!engine->ring.ahead && ring_ahead_new(engine->ring.ring, &options, &engine->ring.ahead) < 0)
		return false;
	return ring_ahead_begin_helper(engine->ring.ahead) == 0;
}

/* As many as were asked for.  One that cannot be begun now is tried no more. */
static void begin_all(struct engine *engine)
{
	while (ring_ahead_helpers(engine->ring.ahead) < engine->ring.most_helpers) {
		if (!begin_helper(engine))
			engine->ring.most_helpers = ring_ahead_helpers(engine->ring.ahead);
	}
}

static void end_all(struct engine *engine)
{
	while (ring_ahead_helpers(engine->ring.ahead) > 0)
		ring_ahead_end_helper(engine->ring.ahead);
}

static void follow_pressure(struct engine *engine, bool has_read)
{
	struct ring_side *ring = &engine->ring;

	switch (ring_pressure_follow(&ring->pressure, ring->now_ns, has_read, engine_ring_head(engine) - ring_position(ring->ring),
				     ring->options.size, ring_waits(ring->ring))) {
	case RING_ONE_MORE_READER:
		if (ring_ahead_helpers(ring->ahead) < ring->most_helpers && !begin_helper(engine))
			ring->most_helpers = ring_ahead_helpers(ring->ahead);
		break;
	case RING_ONE_READER:
		end_all(engine);
		break;
	default:
		break;
	}
}

void engine_ring_look_after_helpers(struct engine *engine, bool has_read)
{
	struct ring_side *ring = &engine->ring;

	if (!ring->ring || ring->most_helpers == 0)
		return;
	ring_ahead_pass(ring->ahead, ring_position(ring->ring));
	if (ring->options.readers > 0)
		begin_all(engine);
	else
		follow_pressure(engine, has_read);
}

void engine_ring_end_helpers(struct engine *engine)
{
	engine->counters.stacks_ahead += ring_ahead_counters(engine->ring.ahead).taken;
	ring_ahead_free(engine->ring.ahead, engine->ring.ring);
	engine->ring.ahead = NULL;
	engine->ring.ring = NULL;
}

void engine_before_fork(struct engine *engine)
{
	ring_ahead_halt(engine->ring.ahead);
}

void engine_after_fork(struct engine *engine)
{
	ring_ahead_go_on(engine->ring.ahead);
}

unsigned engine_readers(const struct engine *engine)
{
	return engine->ring.ring ? 1 + ring_ahead_helpers(engine->ring.ahead) : 0;
}
