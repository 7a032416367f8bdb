/* The state of `allocwatch top`, without a terminal and without a daemon: settings, what was heard last, and
 * what a key, new figures or a new size make of them.
 *
 * The fields are for the layout and the tests to read; only the functions below, and those of top_rows.h and
 * top_stacks.h, change them. */
#ifndef ALLOCWATCH_CLI_TOP_MODEL_H
#define ALLOCWATCH_CLI_TOP_MODEL_H

#include "base/vec.h"
#include "export/text.h"
#include "model/filter.h"
#include "model/snapshot.h"
#include "model/statistics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOP_PROMPT_MAX 256       /* bytes of what is being typed */
#define TOP_TEXT_MAX 320         /* of a message */
#define TOP_STACKS_MAX 100       /* tracebacks of a group that are shown */
#define TOP_LINES_MAX 20000      /* and the lines of all of them */

enum top_sort {
	TOP_BY_SIZE,
	TOP_BY_GROWTH,
	TOP_BY_SHRINK,
	TOP_BY_COUNT,
	TOP_BY_COUNT_GROWTH,
	TOP_BY_AVERAGE,
	TOP_BY_NAME,
	TOP_SORT_COUNT
};
const char *top_sort_name(enum top_sort sort);
int top_sort_parse(const char *name, enum top_sort *ret_sort);          /* 0 or -EINVAL */
/* lineno for KEY_LINENO, and so on. */
const char *top_key_name(enum statistics_key key);

/* Keys are characters, or one of these, which are none. */
enum top_key {
	TOP_KEY_ENTER = 0x110000,
	TOP_KEY_ESCAPE,
	TOP_KEY_ERASE,
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_LEFT,
	TOP_KEY_RIGHT,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
};

/* What a key asks the owner of the model to do. */
enum top_wish { TOP_NOTHING, TOP_QUIT, TOP_SAVE, TOP_REFRESH, TOP_REDRAW };

enum top_page { TOP_TABLE, TOP_STACKS, TOP_HELP };
enum top_prompt { TOP_NO_PROMPT, TOP_FILTER_PROMPT, TOP_NAME_PROMPT };
/* Where the figures come from. */
enum top_link {
	TOP_STARTING,           /* none have come yet */
	TOP_LIVE,
	TOP_ENDED,              /* the tracing is over; these are the last */
	TOP_CUT,                /* the daemon is gone */
};

struct top_settings {
	enum statistics_key key;
	enum top_sort sort;
	bool cumulative, most_recent_first;
	struct traceback_options traceback;
	const struct filter *filters;           /* borrowed, applied beside those that are typed */
	size_t filter_count;
	struct text_source source;
};

/* What a group is known by, whatever the figures. */
struct top_group {
	enum statistics_key key;
	uint64_t id;
	char *title;            /* as in the table */
	char *name, *function, *object;
	uint32_t line, domain, thread;
};

struct top {
	struct top_settings settings;
	bool reverse, frozen, with_blocks;
	/* figures */
	enum top_link link;
	struct snapshot *baseline, *newest;     /* NULL: none yet */
	struct statistics *statistics;          /* newest - baseline; its rows are those of the table */
	size_t row_count;
	double events_per_second;               /* negative: unknown */
	char over[TOP_TEXT_MAX];                /* why, when the link is no longer live */
	/* filters */
	char filter_text[TOP_PROMPT_MAX];
	VEC_OF(struct filter) typed;
	VEC_OF(struct filter) filters;          /* the settings' and the typed ones, shallow */
	/* the view */
	enum top_page page;
	enum top_prompt prompt;
	int width, height;
	size_t cursor, first;                   /* in the table */
	uint64_t selected;                      /* the id of the group at the cursor */
	struct top_group group;                 /* whose tracebacks are open */
	VEC_OF(char *) lines;                   /* of the tracebacks */
	size_t scroll;                          /* of tracebacks and help */
	int shift;                              /* columns that names are moved by */
	char typing[TOP_PROMPT_MAX];
	char message[TOP_TEXT_MAX];             /* until the next key */
};

/* NULL when there is no memory.  The settings' filters and source must live as long. */
struct top *top_new(const struct top_settings *settings);
void top_free(struct top *top);                 /* accepts NULL */

/* Do the figures need snapshots with blocks?  Settled by the key it was made with: a baseline without them would
 * say nothing of threads. */
bool top_wants_blocks(const struct top *top);

void top_resize(struct top *top, int width, int height);
/* New figures; takes a reference of its own.  The first ones are the baseline, and so are those of another
 * program under the same PID.  Frozen, it keeps what it has.  0 or -ENOMEM. */
int top_take_snapshot(struct top *top, struct snapshot *snapshot);
/* The figures are the last ones, for this reason. */
void top_end(struct top *top, enum top_link link, const char *reason);
void top_say(struct top *top, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* TOP_SAVE: under the name in top->typing, which may be empty.  0 or -ENOMEM. */
int top_key(struct top *top, uint32_t key, enum top_wish *ret_wish);

/* How the window is divided: lines of the heading above the titles, and of the table or text below it. */
int top_heading_lines(const struct top *top);
size_t top_body_lines(const struct top *top);

/* The help, line by line; NULL behind the last. */
const char *top_help_line(size_t line);
size_t top_help_lines(void);

/* Groups the newest snapshot again and brings cursor and tracebacks to it.  0, -ENOMEM, or -EINVAL with a
 * reason: these settings do not go together. */
int top_regroup(struct top *top, const char **ret_reason);
/* Sorts the rows again; the cursor goes with its group. */
void top_reorder(struct top *top);
/* After the cursor or a scroll has moved. */
void top_settle(struct top *top);
/* Growth is counted from the newest snapshot on. */
void top_set_baseline(struct top *top);
enum statistics_key top_key_after(enum statistics_key key);

#endif
