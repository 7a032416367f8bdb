#include "probe/tick_clock.h"

#include "arch/arch.h"
#include "base/clock.h"
#include "base/fd.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALIBRATION_NS (2 * NSEC_PER_MSEC)
#define FOLLOW_NS NSEC_PER_SEC
#define OFF_BY_PERCENT 1
#define CLOCK_READ_NS 5000             /* as long as it takes, undisturbed, many times over */
#define CLOCK_READS_MOST 32
#define CLOCKS "/sys/devices/system/clocksource/clocksource0/available_clocksource"
#define CLOCKS_TEXT_MAX 4096

/* By both clocks; once more when this thread has lost its processor between them. */
static struct tick_moment read_clocks(void)
{
	uint64_t shortest = UINT64_MAX;
	struct tick_moment moment = { 0, 0 };

	for (unsigned i = 0; i < CLOCK_READS_MOST && shortest > CLOCK_READ_NS; i++) {
		uint64_t before = clock_monotonic_ns(), ticks = arch_ticks(), took = clock_monotonic_ns() - before;

		if (took < shortest) {
			shortest = took;
			moment = (struct tick_moment){ before + took / 2, ticks };
		}
	}
	return moment;
}

/* The kernel takes it off the list when it finds it unstable or not the same everywhere. */
static bool is_a_clock_of_the_kernels(void)
{
	bool found = false;
	char *text, *rest, *word;

	if (file_read_text(CLOCKS, CLOCKS_TEXT_MAX, &text, NULL) < 0)
		return false;
	for (word = strtok_r(text, " \n", &rest); word && !found; word = strtok_r(NULL, " \n", &rest))
		found = strcmp(word, ARCH_TICKS_CLOCK) == 0;
	free(text);
	return found;
}

static uint64_t scaled(uint64_t value, uint64_t by, uint64_t in)
{
	unsigned __int128 product = (unsigned __int128)value * by / (in > 0 ? in : 1);

	return product > UINT64_MAX ? UINT64_MAX : (uint64_t)product;
}

void tick_clock_set(struct tick_clock *clock, struct tick_moment began, struct tick_moment ended)
{
	clock->began = began;
	clock->last = ended;
	clock->rough = true;
	clock->rate = (struct tick_moment){ ended.ns - began.ns, ended.ticks - began.ticks };
}

void tick_clock_begin(struct tick_clock *clock)
{
	const struct timespec pause = { 0, CALIBRATION_NS };
	static struct tick_moment rate;
	struct tick_moment began = read_clocks();

	if (rate.ns == 0) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		tick_clock_set(clock, began, read_clocks());
		rate = clock->rate;
	} else {
		*clock = (struct tick_clock){ .rough = true, .began = began, .last = began, .rate = rate };
	}
	clock->usable = is_a_clock_of_the_kernels();
}

uint64_t tick_clock_per_ms(const struct tick_clock *clock)
{
	return scaled(NSEC_PER_MSEC, clock->rate.ticks, clock->rate.ns);
}

void tick_clock_take(struct tick_clock *clock, struct tick_moment moment)
{
	struct tick_moment passed = { moment.ns - clock->last.ns, moment.ticks - clock->last.ticks };
	uint64_t by_ticks = scaled(passed.ticks, clock->rate.ns, clock->rate.ticks);
	uint64_t off = by_ticks > passed.ns ? by_ticks - passed.ns : passed.ns - by_ticks;

	clock->last = moment;
	if (!clock->rough && off > passed.ns / 100 * OFF_BY_PERCENT) {
		clock->began = moment;
		clock->rough = true;
		return;
	}
	clock->rate = passed;
	clock->rough = false;
}

void tick_clock_follow(struct tick_clock *clock, uint64_t now_ns)
{
	if (clock->usable && now_ns > clock->last.ns + FOLLOW_NS)
		tick_clock_take(clock, read_clocks());
}

static uint64_t before(uint64_t ns, uint64_t by)
{
	return by < ns ? ns - by : 0;
}

static uint64_t behind(uint64_t ns, uint64_t by)
{
	return by < UINT64_MAX - ns ? ns + by : UINT64_MAX;
}

uint64_t tick_clock_ns(const struct tick_clock *clock, uint64_t ticks, uint64_t now_ns)
{
	const struct tick_moment *last = &clock->last, *rate = &clock->rate;
	uint64_t ns = ticks < last->ticks ? before(last->ns, scaled(last->ticks - ticks, rate->ns, rate->ticks)) :
					    behind(last->ns, scaled(ticks - last->ticks, rate->ns, rate->ticks));

	if (!clock->usable)
		return 0;
	if (ns < clock->began.ns)
		ns = clock->began.ns;
	return ns < now_ns ? ns : now_ns;
}
