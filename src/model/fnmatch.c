/* Python's fnmatch, by what its patterns match and not by how it does it: Python translates a
 * pattern into a regular expression, and the corners of bracket expressions are those of that
 * translation.  At most one star is ever tried again, so the time is the product of both lengths. */
#include "model/filter.h"
#include "model/utf8.h"

#include <string.h>

/* A bracket expression after Python has dropped its empty ranges: characters, and marks where one
 * character and the next are the ends of a range. */
struct set {
	struct {
		uint32_t code;
		bool is_range;
	} items[FILTER_LENGTH_MAX];
	size_t count;
};

/* Where the ']' of a bracket expression is whose '[' stands before `body`; NULL: it has none. */
static const char *set_end(const char *body)
{
	const char *at = body;

	if (*at == '!')
		at++;
	if (*at == ']')
		at++;
	return strchr(at, ']');
}

static void set_add(struct set *set, uint32_t code, bool is_range)
{
	set->items[set->count].code = code;
	set->items[set->count++].is_range = is_range;
}

/* A hyphen makes a range unless it is the first character (after '!'), the last, or less than two
 * characters behind the hyphen of another range. */
static void set_parse(struct set *set, const char *body, const char *end)
{
	size_t index = 0, earliest = *body == '!' ? 2 : 1;

	set->count = 0;
	while (body < end) {
		uint32_t code = utf8_next(&body);
		bool is_range = code == '-' && index >= earliest && body < end;

		set_add(set, code, is_range);
		if (is_range)
			earliest = index + 3;
		index++;
	}
}

/* A range whose ends are the wrong way round goes away together with its ends. */
static void set_drop_empty_ranges(struct set *set)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->count; i++) {
		if (set->items[i].is_range && set->items[i - 1].code > set->items[i + 1].code) {
			kept--;
			i++;
		} else {
			set->items[kept++] = set->items[i];
		}
	}
	set->count = kept;
}

static bool set_has(const struct set *set, size_t first, uint32_t code)
{
	for (size_t i = first; i < set->count; i++) {
		uint32_t low = set->items[i].code, high = low;

		if (i + 2 < set->count && set->items[i + 1].is_range) {
			high = set->items[i + 2].code;
			i += 2;
		}
		if (low <= code && code <= high)
			return true;
	}
	return false;
}

static bool set_matches(const char *body, const char *end, uint32_t code)
{
	struct set set;

	set_parse(&set, body, end);
	set_drop_empty_ranges(&set);
	if (set.count > 0 && set.items[0].code == '!' && !set.items[0].is_range)
		return !set_has(&set, 1, code);
	return set_has(&set, 0, code);
}

/* Whether the pattern's next element, which is no star, matches a character; it is passed over. */
static bool match_one(const char **pattern, uint32_t code)
{
	const char *end;
	uint32_t want = utf8_next(pattern);

	if (want == '?')
		return true;
	if (want == '[') {
		end = set_end(*pattern);
		if (end) {
			const char *body = *pattern;

			*pattern = end + 1;
			return set_matches(body, end, code);
		}
	}
	return want == code;
}

bool fnmatch_python(const char *pattern, const char *text)
{
	const char *star = NULL, *star_text = NULL;

	if (strnlen(pattern, FILTER_LENGTH_MAX) == FILTER_LENGTH_MAX)
		return false;
	for (;;) {
		const char *next = text;

		if (*pattern == '*') {
			star = ++pattern;
			star_text = text;
			continue;
		}
		if (!*pattern && !*text)
			return true;
		if (*pattern && *text && match_one(&pattern, utf8_next(&next))) {
			text = next;
			continue;
		}
		if (!star || !*star_text)
			return false;
		/* The last star takes one more; the ones before it need not. */
		utf8_next(&star_text);
		pattern = star;
		text = star_text;
	}
}
