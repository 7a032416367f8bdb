#include "model/alarm.h"

#include <string.h>

#define NS_PER_MINUTE (60ULL * 1000000000)
/* So many steps of a slope are kept, and some more, so that there is always one that is old enough. */
#define SLOPE_STEPS (ALARM_POINTS / 2)

static const char *const names[] = {
	[ALARM_NONE] = "", [ALARM_RSS_LIMIT] = "rss-limit", [ALARM_RSS_SLOPE] = "rss-slope",
	[ALARM_MEMORY_HIGH] = "memory-high", [ALARM_MEMORY_MAX] = "memory-max", [ALARM_MEMORY_OOM] = "memory-oom",
	[ALARM_MEMORY_PRESSURE] = "memory-pressure",
};

const char *alarm_name(enum alarm_cause cause)
{
	return names[cause];
}

bool alarm_is_name(const char *name)
{
	for (size_t i = ALARM_NONE + 1; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

void alarm_init(struct alarm *alarm, const struct alarm_figures *first)
{
	memset(alarm, 0, sizeof(*alarm));
	alarm_count_anew(alarm, first);
	alarm->seldom = 1;
}

void alarm_count_anew(struct alarm *alarm, const struct alarm_figures *first)
{
	alarm->told = *first;
	alarm->window_ns = first->now_ns;
	alarm->window_stalled_us = first->stalled_us;
}

/* --- resident memory --- */

static bool passes_limit(struct alarm *alarm, const struct alarm_limits *limits, const struct alarm_figures *figures)
{
	if (limits->rss_bytes == 0 || figures->rss_bytes == 0)
		return false;
	if (figures->rss_bytes <= limits->rss_bytes / 100 * ALARM_BACK_PERCENT)
		alarm->over = false;
	return figures->rss_bytes > limits->rss_bytes && !alarm->over;
}

static void note_point(struct alarm *alarm, const struct alarm_limits *limits, const struct alarm_figures *figures)
{
	if (alarm->point_count > 0 &&
	    figures->now_ns - alarm->points[alarm->point].now_ns < limits->slope_ns / SLOPE_STEPS)
		return;
	alarm->point = (alarm->point + 1) % ALARM_POINTS;
	alarm->points[alarm->point] = (struct alarm_point){ figures->now_ns, figures->rss_bytes };
	if (alarm->point_count < ALARM_POINTS)
		alarm->point_count++;
}

/* The youngest one that is at least as old as the slope is long; NULL: it is not known for so long. */
static const struct alarm_point *begin_of_slope(const struct alarm *alarm, const struct alarm_limits *limits,
						uint64_t now_ns)
{
	for (unsigned i = 0; i < alarm->point_count; i++) {
		const struct alarm_point *point = &alarm->points[(alarm->point + ALARM_POINTS - i) % ALARM_POINTS];

		if (now_ns - point->now_ns >= limits->slope_ns)
			return point;
	}
	return NULL;
}

static bool grows_too_fast(struct alarm *alarm, const struct alarm_limits *limits, const struct alarm_figures *figures)
{
	const struct alarm_point *begin;
	double minutes, slope;

	if (limits->slope_bytes == 0 || figures->rss_bytes == 0)
		return false;
	begin = begin_of_slope(alarm, limits, figures->now_ns);
	note_point(alarm, limits, figures);
	if (!begin)
		return false;
	minutes = (double)(figures->now_ns - begin->now_ns) / (double)NS_PER_MINUTE;
	slope = ((double)figures->rss_bytes - (double)begin->rss_bytes) / minutes;
	if (slope * 100 <= (double)limits->slope_bytes * ALARM_BACK_PERCENT)
		alarm->steep = false;
	return slope > (double)limits->slope_bytes && !alarm->steep;
}

/* --- the cgroup --- */

static enum alarm_cause counted(const struct alarm *alarm, const struct alarm_limits *limits,
				const struct alarm_figures *figures)
{
	if (!limits->events)
		return ALARM_NONE;
	if (figures->oom > alarm->told.oom)
		return ALARM_MEMORY_OOM;
	if (figures->max > alarm->told.max)
		return ALARM_MEMORY_MAX;
	return figures->high > alarm->told.high ? ALARM_MEMORY_HIGH : ALARM_NONE;
}

/* As the kernel's own trigger: looked at several times within each window. */
static bool is_pressed(struct alarm *alarm, const struct alarm_limits *limits, const struct alarm_figures *figures)
{
	uint64_t begin_us = alarm->window_stalled_us;
	bool pressed = figures->pressed ||
		       (figures->stalled_us > begin_us && figures->stalled_us - begin_us >= limits->stalled_us);

	if (figures->now_ns - alarm->window_ns >= ALARM_WINDOW_NS || figures->stalled_us < begin_us) {
		alarm->window_ns = figures->now_ns;
		alarm->window_stalled_us = figures->stalled_us;
	}
	return limits->stalled_us > 0 && pressed;
}

/* --- all of it --- */

static void give(struct alarm *alarm, const struct alarm_limits *limits, const struct alarm_figures *figures,
		 bool passed, bool grew)
{
	bool again = alarm->given && figures->now_ns - alarm->last_ns < 2 * alarm->seldom * limits->least_ns;

	if (!again)
		alarm->seldom = 1;
	else if (alarm->seldom < ALARM_SELDOM_MAX)
		alarm->seldom *= 2;
	alarm->given = true;
	alarm->last_ns = figures->now_ns;
	alarm->told = *figures;
	alarm->over |= passed;
	alarm->steep |= grew;
}

enum alarm_cause alarm_look(struct alarm *alarm, const struct alarm_limits *limits, const struct alarm_figures *figures)
{
	/* All of them are looked at each time, since they remember what was. */
	bool passed = passes_limit(alarm, limits, figures), grew = grows_too_fast(alarm, limits, figures);
	bool pressed = is_pressed(alarm, limits, figures);
	enum alarm_cause cause = counted(alarm, limits, figures);

	if (cause == ALARM_NONE || cause == ALARM_MEMORY_HIGH)
		cause = passed ? ALARM_RSS_LIMIT : cause;
	if (cause == ALARM_NONE)
		cause = grew ? ALARM_RSS_SLOPE : pressed ? ALARM_MEMORY_PRESSURE : ALARM_NONE;
	if (cause == ALARM_NONE ||
	    (alarm->given && figures->now_ns - alarm->last_ns < alarm->seldom * limits->least_ns))
		return ALARM_NONE;
	give(alarm, limits, figures, passed, grew);
	return cause;
}
