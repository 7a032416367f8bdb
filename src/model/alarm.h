/* When a process may be about to run out of memory: told from its figures, as they are looked at from time to time.
 *
 * An alarm that comes too soon after the one before is not lost: as long as its cause lasts it comes later.  One that
 * comes again and again comes ever more seldom. */
#ifndef ALLOCWATCH_MODEL_ALARM_H
#define ALLOCWATCH_MODEL_ALARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum alarm_cause {
	ALARM_NONE,
	ALARM_RSS_LIMIT,
	ALARM_RSS_SLOPE,
	ALARM_MEMORY_HIGH,
	ALARM_MEMORY_MAX,
	ALARM_MEMORY_OOM,
	ALARM_MEMORY_PRESSURE,
};
/* The snapshot's name, see model/occasion.h. */
const char *alarm_name(enum alarm_cause cause);
bool alarm_is_name(const char *name);

struct alarm_limits {
	uint64_t rss_bytes;            /* 0: none */
	uint64_t slope_bytes;          /* a minute, on the average of slope_ns; 0: none */
	uint64_t slope_ns;
	bool events;                   /* of the cgroup */
	uint64_t stalled_us;           /* within ALARM_WINDOW_NS; 0: none */
	uint64_t least_ns;             /* between two */
};

/* The kernel's word for pressure: waiting for memory so long within this time. */
#define ALARM_WINDOW_NS (2ULL * 1000000000)
/* What has passed the limit has gone back below it only when it is so many percent of it. */
#define ALARM_BACK_PERCENT 90
/* An alarm that comes again within twice the time comes at most half as often the next time, down to this part. */
#define ALARM_SELDOM_MAX 64

/* Counters of memory.events(5 in cgroup-v2.rst), and the total of "some" of memory.pressure. */
struct alarm_figures {
	uint64_t now_ns;               /* CLOCK_MONOTONIC */
	uint64_t rss_bytes;            /* 0: not known */
	uint64_t high, max, oom;
	uint64_t stalled_us;
	bool pressed;                  /* the kernel has told of such pressure by itself */
};

/* Points that a slope is made of. */
#define ALARM_POINTS 64

struct alarm {
	struct alarm_figures told;     /* of which counters an alarm was given */
	bool over, steep;              /* was told, and has not gone back */
	struct alarm_point {
		uint64_t now_ns, rss_bytes;
	} points[ALARM_POINTS];
	unsigned point, point_count;   /* the newest one's place */
	uint64_t window_ns, window_stalled_us;
	bool given;
	uint64_t last_ns, seldom;      /* `seldom` times the least time until the next */
};

/* What was counted before is no cause; a limit that is passed already is one. */
void alarm_init(struct alarm *alarm, const struct alarm_figures *first);
/* The counters are another cgroup's from now on; what is known of the process's own memory stays. */
void alarm_count_anew(struct alarm *alarm, const struct alarm_figures *first);
/* The gravest cause of an alarm now, which counts as given; or ALARM_NONE. */
enum alarm_cause alarm_look(struct alarm *alarm, const struct alarm_limits *limits, const struct alarm_figures *figures);

#endif
