/* What made up the peak, and what was gone at once, against a model that copies everything at every
 * peak and looks at everything at every event. */
#include "require.h"

#include "model/heap.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACKS 40
#define PLACES 300
#define THREADS 5
#define EVENTS 20000

struct sums {
	uint64_t blocks, bytes;
};

/* Each block with the number of its birth; each thread with that of its last. */
struct model {
	struct { bool live; uint64_t size, birth; uint32_t stack; int thread; } place[PLACES];
	uint64_t births, last_birth[THREADS];
	struct sums live[STACKS], peak[STACKS];
	uint64_t made[STACKS], temporary[STACKS];
	uint64_t live_bytes, live_blocks, peak_bytes, peak_blocks, peak_time;
};

static uint64_t compared, peaks, at_once, differing;

static raddr address_of(int place)
{
	return 0x10000 + (raddr)place * 32;
}

static void model_peak(struct model *m, uint64_t time)
{
	memcpy(m->peak, m->live, sizeof(m->peak));
	m->peak_bytes = m->live_bytes;
	m->peak_blocks = m->live_blocks;
	m->peak_time = time;
}

static void model_born(struct model *m, int at, uint32_t stack, uint64_t size, int thread, uint64_t time)
{
	m->births++;
	m->place[at].live = true;
	m->place[at].size = size;
	m->place[at].stack = stack;
	m->place[at].thread = thread;
	m->place[at].birth = m->last_birth[thread] = m->births;
	m->live[stack].blocks++;
	m->live[stack].bytes += size;
	m->made[stack]++;
	m->live_blocks++;
	m->live_bytes += size;
	if (m->live_bytes > m->peak_bytes) {
		model_peak(m, time);
		peaks++;
	}
}

static void model_freed(struct model *m, int at)
{
	uint32_t stack = m->place[at].stack;

	if (m->place[at].birth == m->last_birth[m->place[at].thread]) {
		m->temporary[stack]++;
		at_once++;
	}
	m->place[at].live = false;
	m->live[stack].blocks--;
	m->live[stack].bytes -= m->place[at].size;
	m->live_blocks--;
	m->live_bytes -= m->place[at].size;
}

static void model_clear(struct model *m)
{
	uint64_t births = m->births, last[THREADS];

	memcpy(last, m->last_birth, sizeof(last));
	memset(m, 0, sizeof(*m));
	m->births = births;
	memcpy(m->last_birth, last, sizeof(last));
}

static int match_trace(void *context, const struct heap_trace *trace)
{
	struct model *m = context;
	uint32_t s = trace->stack;

	REQUIRE(trace->live_blocks == m->live[s].blocks);
	REQUIRE(trace->live_bytes == m->live[s].bytes);
	REQUIRE(trace->peak_blocks == m->peak[s].blocks);
	REQUIRE(trace->peak_bytes == m->peak[s].bytes);
	REQUIRE(trace->total_blocks == m->made[s]);
	REQUIRE(trace->temporary_blocks == m->temporary[s]);
	differing += trace->peak_bytes != trace->live_bytes;
	compared++;
	return 0;
}

static void compare(struct heap *heap, struct model *m)
{
	struct heap_counters counters = heap_counters(heap);
	uint64_t before = compared, known = 0;

	heap_each_trace(heap, match_trace, m);
	for (int s = 0; s < STACKS; s++)
		known += m->made[s] > 0;
	REQUIRE(compared - before == known);
	REQUIRE(counters.peak_bytes == m->peak_bytes);
	REQUIRE(counters.peak_blocks == m->peak_blocks);
	REQUIRE(counters.peak_ns == m->peak_time);
	REQUIRE(counters.live_bytes == m->live_bytes);
}

/* Phases of growth and of shrinking, so that there are peaks at all times. */
static void step(struct heap *heap, struct model *m, uint64_t time, bool growing)
{
	int at = rand() % PLACES, thread = rand() % THREADS;
	struct alloc_event event = { .tid = thread + 100, .time_ns = time };

	if (m->place[at].live && (!growing || rand() % 4 == 0)) {
		event.kind = ALLOC_FREED;
		event.old_address = address_of(at);
		model_freed(m, at);
	} else if (!m->place[at].live && (growing || rand() % 4 == 0)) {
		event.kind = ALLOC_BORN;
		event.address = address_of(at);
		event.size = (uint64_t)(rand() % 3 ? rand() % 100 : 0);
		event.stack = (uint32_t)(rand() % STACKS);
		model_born(m, at, event.stack, event.size, thread, time);
	} else {
		return;
	}
	REQUIRE(heap_apply(heap, &event) == 0);
}

START_TEST(peak_and_churn_of_every_stack_are_exact)
{
	struct heap *heap = heap_new(NULL, true, 0);
	static struct model m;

	memset(&m, 0, sizeof(m));
	srand((unsigned)_i + 1);
	for (uint64_t i = 1; i <= EVENTS; i++) {
		step(heap, &m, i * 1000, i / 500 % 2 == 0);
		if (rand() % 1500 == 0) {
			heap_reset_peak(heap, i * 1000);
			model_peak(&m, i * 1000);
		}
		if (rand() % 5000 == 0) {
			heap_clear(heap);
			model_clear(&m);
		}
		if (rand() % 20 == 0)
			compare(heap, &m);
	}
	compare(heap, &m);
	heap_free(heap);
	ck_assert_uint_gt(compared, 10000);
	ck_assert_uint_gt(differing, compared / 20);
	ck_assert_uint_gt(peaks, 100);
	ck_assert_uint_gt(at_once, 100);
	printf("heap peak: %" PRIu64 " stacks compared (%" PRIu64 " live with something else than at the peak), "
	       "%" PRIu64 " peaks, %" PRIu64 " blocks gone at once\n", compared, differing, peaks, at_once);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("heap peak");
	TCase *tcase = tcase_create("oracle");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, peak_and_churn_of_every_stack_are_exact, 0, 20);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
