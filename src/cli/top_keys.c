/* What keys do, see top_model.h. */
#include "cli/top_filter.h"
#include "cli/top_model.h"
#include "cli/top_stacks.h"

#include "model/snapshot_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CTRL(letter) ((letter) & 0x1f)
#define SHIFT_STEP 8
#define SHIFT_MAX 4000

static const char *const help[] = {
	"Up Down k j       one line up or down",
	"PgUp PgDn         a page",
	"Home End          the first line, the last",
	"Left Right        move long names",
	"Enter             the tracebacks of a group, with source lines",
	"g K               next key to group by",
	"c                 count every frame of a traceback, not the last call only",
	"s                 next order: size, growth, shrink, count, new, average, name",
	"r                 the other way round",
	"/                 filter: [+-]PATTERN[:LINE][@all], several with spaces between;",
	"                  * and ? as in tracemalloc's filters, empty for none",
	"b                 set the baseline of growth to now",
	"f Space           freeze, go on",
	"S                 keep a snapshot, by a name if you like",
	"m                 tracebacks with the most recent call first, or last",
	"Ctrl-L            draw the screen anew",
	"?                 this help",
	"q Esc             back; q in the table: leave",
	"",
	"SIZE and BLOCKS are what is live now, GROWTH is since the baseline, % is of",
	"all that is shown. Blocks that were freed since leave a negative growth.",
};

const char *top_help_line(size_t line)
{
	return line < sizeof(help) / sizeof(help[0]) ? help[line] : NULL;
}

size_t top_help_lines(void)
{
	return sizeof(help) / sizeof(help[0]);
}

/* --- moving --- */

static void move_to(size_t *place, size_t count, long step)
{
	if (step < 0)
		*place = *place > (size_t)-step ? *place - (size_t)-step : 0;
	else
		*place = *place + (size_t)step < count ? *place + (size_t)step : count > 0 ? count - 1 : 0;
}

static void move_by(struct top *top, long step)
{
	if (top->page == TOP_TABLE)
		move_to(&top->cursor, top->row_count, step);
	else
		move_to(&top->scroll, SIZE_MAX / 2, step);
	top_settle(top);
}

static void shift_by(struct top *top, int step)
{
	top->shift += step;
	if (top->shift < 0)
		top->shift = 0;
	if (top->shift > SHIFT_MAX)
		top->shift = SHIFT_MAX;
}

/* True when the key was one of these. */
static bool move(struct top *top, uint32_t key)
{
	long page = (long)top_body_lines(top), all = 1L << 40;

	switch (key) {
	case TOP_KEY_UP:
	case 'k':
		move_by(top, -1);
		return true;
	case TOP_KEY_DOWN:
	case 'j':
		move_by(top, 1);
		return true;
	case TOP_KEY_PAGE_UP:
	case CTRL('b'):
		move_by(top, -page);
		return true;
	case TOP_KEY_PAGE_DOWN:
	case CTRL('f'):
		move_by(top, page);
		return true;
	case TOP_KEY_HOME:
		move_by(top, -all);
		return true;
	case TOP_KEY_END:
	case 'G':
		move_by(top, all);
		return true;
	case TOP_KEY_LEFT:
		shift_by(top, -SHIFT_STEP);
		return true;
	case TOP_KEY_RIGHT:
		shift_by(top, SHIFT_STEP);
		return true;
	default:
		return false;
	}
}

/* --- what is typed into the last line --- */

static void start_prompt(struct top *top, enum top_prompt prompt, const char *text)
{
	top->prompt = prompt;
	snprintf(top->typing, sizeof(top->typing), "%s", text);
}

static void type(struct top *top, uint32_t code)
{
	size_t len = strlen(top->typing);
	char bytes[5] = "";
	size_t n = 0;

	if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code >= 0x110000)
		return;
	if (code < 0x80) {
		bytes[n++] = (char)code;
	} else {
		if (code >= 0x10000) {
			bytes[n++] = (char)(0xf0 | code >> 18);
			bytes[n++] = (char)(0x80 | (code >> 12 & 0x3f));
		} else if (code >= 0x800) {
			bytes[n++] = (char)(0xe0 | code >> 12);
		}
		bytes[n++] = (char)(code < 0x800 ? 0xc0 | code >> 6 : 0x80 | (code >> 6 & 0x3f));
		bytes[n++] = (char)(0x80 | (code & 0x3f));
	}
	if (len + n < sizeof(top->typing))
		memcpy(top->typing + len, bytes, n + 1);
	else
		top_say(top, "No more fits here");
}

/* The last character, with all its bytes. */
static void erase(struct top *top)
{
	size_t len = strlen(top->typing);

	while (len > 0 && ((unsigned char)top->typing[--len] & 0xc0) == 0x80)
		;
	top->typing[len] = '\0';
}

/* Something that is grouped anew; when these settings do not go together the reason is said. */
static int regroup_or_say(struct top *top, bool *ret_done)
{
	const char *reason;
	int r = top_regroup(top, &reason);

	*ret_done = r == 0;
	if (r == -EINVAL)
		top_say(top, "Not so: %s", reason);
	return r == -EINVAL ? 0 : r;
}

static int finish_filter(struct top *top)
{
	const char *reason;
	bool done;
	int r = top_filter_set(top, top->typing, &reason);

	if (r == -EINVAL) {
		top_say(top, "No filter: %s", reason);
		return 0;
	}
	if (r < 0)
		return r;
	top->prompt = TOP_NO_PROMPT;
	memcpy(top->filter_text, top->typing, sizeof(top->filter_text));
	top->cursor = 0;
	r = regroup_or_say(top, &done);
	if (r == 0 && top->statistics && top->row_count == 0 && *top->typing)
		top_say(top, "Nothing matches: a pattern is for the whole name, *name* for a part of it");
	return r;
}

static void finish_name(struct top *top, enum top_wish *ret_wish)
{
	if (*top->typing && !snapshot_name_is_valid(top->typing)) {
		top_say(top, "A snapshot's name consists of letters, digits, '.', '_' and '-'");
	} else if (*top->typing && !snapshot_name_may_be_given(top->typing)) {
		top_say(top, "The daemon gives this name by itself; choose another");
	} else {
		top->prompt = TOP_NO_PROMPT;
		*ret_wish = TOP_SAVE;
	}
}

static int key_in_prompt(struct top *top, uint32_t key, enum top_wish *ret_wish)
{
	switch (key) {
	case TOP_KEY_ESCAPE:
		top->prompt = TOP_NO_PROMPT;
		return 0;
	case TOP_KEY_ERASE:
		erase(top);
		return 0;
	case CTRL('u'):
		top->typing[0] = '\0';
		return 0;
	case TOP_KEY_ENTER:
		if (top->prompt == TOP_FILTER_PROMPT)
			return finish_filter(top);
		finish_name(top, ret_wish);
		return 0;
	default:
		type(top, key);
		return 0;
	}
}

/* --- commands --- */

/* The next key that goes with the other settings. */
static int next_key(struct top *top)
{
	enum statistics_key first = top->settings.key;
	const char *reason;
	int r;

	do {
		top->settings.key = top_key_after(top->settings.key);
		r = top_regroup(top, &reason);
	} while (r == -EINVAL && top->settings.key != first);
	top->shift = 0;
	return r == -EINVAL ? 0 : r;
}

static int toggle_cumulative(struct top *top)
{
	bool done;
	int r;

	top->settings.cumulative = !top->settings.cumulative;
	r = regroup_or_say(top, &done);
	if (!done)
		top->settings.cumulative = !top->settings.cumulative;
	return r;
}

static int set_baseline_to_now(struct top *top)
{
	bool done;

	if (!top->newest)
		return 0;
	top_set_baseline(top);
	top_say(top, "Growth counts from now on");
	return regroup_or_say(top, &done);
}

static int open_stacks(struct top *top)
{
	int r = top->cursor < top->row_count ? top_stacks_choose(top) : 0;

	if (r < 0 || top->cursor >= top->row_count)
		return r;
	top->page = TOP_STACKS;
	top->scroll = 0;
	top->shift = 0;
	return top_stacks_make(top);
}

static void leave_page(struct top *top)
{
	if (top->page == TOP_STACKS)
		top_stacks_clear(top);
	top->page = TOP_TABLE;
	top->scroll = 0;
	top->shift = 0;
	top_settle(top);
}

static void freeze(struct top *top, enum top_wish *ret_wish)
{
	top->frozen = !top->frozen;
	if (!top->frozen)
		*ret_wish = TOP_REFRESH;
}

static int key_in_table(struct top *top, uint32_t key)
{
	switch (key) {
	case 'g':
	case 'K':
		return next_key(top);
	case 'c':
		return toggle_cumulative(top);
	case 's':
		top->settings.sort = (top->settings.sort + 1) % TOP_SORT_COUNT;
		top_reorder(top);
		return 0;
	case 'r':
		top->reverse = !top->reverse;
		top_reorder(top);
		return 0;
	case '/':
		start_prompt(top, TOP_FILTER_PROMPT, top->filter_text);
		return 0;
	case TOP_KEY_ENTER:
		return open_stacks(top);
	default:
		return 0;
	}
}

static int key_in_stacks(struct top *top, uint32_t key)
{
	if (key == 'm') {
		top->settings.most_recent_first = !top->settings.most_recent_first;
		return top_stacks_make(top);
	}
	if (key == TOP_KEY_ENTER)
		leave_page(top);
	return 0;
}

static int key_of_page(struct top *top, uint32_t key)
{
	if (top->page == TOP_TABLE)
		return key_in_table(top, key);
	if (top->page == TOP_STACKS)
		return key_in_stacks(top, key);
	leave_page(top);                /* the help: any key */
	return 0;
}

int top_key(struct top *top, uint32_t key, enum top_wish *ret_wish)
{
	*ret_wish = TOP_NOTHING;
	top->message[0] = '\0';
	if (top->prompt != TOP_NO_PROMPT)
		return key_in_prompt(top, key, ret_wish);
	if (move(top, key))
		return 0;
	switch (key) {
	case 'q':
	case TOP_KEY_ESCAPE:
	case TOP_KEY_ERASE:
		if (top->page == TOP_TABLE)
			*ret_wish = key == 'q' ? TOP_QUIT : TOP_NOTHING;
		else
			leave_page(top);
		return 0;
	case '?':
	case 'h':
		if (top->page == TOP_STACKS)
			leave_page(top);
		top->page = TOP_HELP;
		top->scroll = 0;
		return 0;
	case 'f':
	case ' ':
		freeze(top, ret_wish);
		return 0;
	case 'b':
		return set_baseline_to_now(top);
	case 'S':
		start_prompt(top, TOP_NAME_PROMPT, "");
		return 0;
	case CTRL('l'):
		*ret_wish = TOP_REDRAW;
		return 0;
	default:
		return key_of_page(top, key);
	}
}
