#include "base/units.h"

#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE (60 * NSEC_PER_SEC)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define DURATION_MAX (36525 * DAY)

/* "12" or "1.5" as whole units and a fraction; digits of the fraction past the ninth are dropped. */
struct decimal {
	uint64_t whole;
	uint64_t billionths;
};

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit durations[] = {
	{ "", NSEC_PER_SEC },
	{ "ns", 1 },
	{ "us", NSEC_PER_USEC }, { "usec", NSEC_PER_USEC },
	{ "ms", NSEC_PER_MSEC }, { "msec", NSEC_PER_MSEC },
	{ "s", NSEC_PER_SEC }, { "sec", NSEC_PER_SEC },
	{ "second", NSEC_PER_SEC }, { "seconds", NSEC_PER_SEC },
	{ "m", MINUTE }, { "min", MINUTE }, { "minute", MINUTE }, { "minutes", MINUTE },
	{ "h", HOUR }, { "hr", HOUR }, { "hour", HOUR }, { "hours", HOUR },
	{ "d", DAY }, { "day", DAY }, { "days", DAY },
	{ "w", 7 * DAY }, { "week", 7 * DAY }, { "weeks", 7 * DAY },
	{ NULL, 0 },
};

static const struct unit sizes[] = {
	{ "", 1 }, { "B", 1 },
	{ "K", 1ULL << 10 }, { "KiB", 1ULL << 10 },
	{ "M", 1ULL << 20 }, { "MiB", 1ULL << 20 },
	{ "G", 1ULL << 30 }, { "GiB", 1ULL << 30 },
	{ "T", 1ULL << 40 }, { "TiB", 1ULL << 40 },
	{ NULL, 0 },
};

static int take_decimal(const char **text, struct decimal *ret)
{
	struct decimal decimal = { 0 };
	uint64_t place = 100000000;
	const char *p = *text;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++) {
		if (__builtin_mul_overflow(decimal.whole, 10, &decimal.whole) ||
		    __builtin_add_overflow(decimal.whole, (uint64_t)(*p - '0'), &decimal.whole))
			return -ERANGE;
	}
	if (*p == '.') {
		if (!isdigit((unsigned char)*++p))
			return -EINVAL;
		for (; isdigit((unsigned char)*p); p++, place /= 10)
			decimal.billionths += (uint64_t)(*p - '0') * place;
	}
	*text = p;
	*ret = decimal;
	return 0;
}

static const struct unit *take_unit(const char **text, const struct unit *units)
{
	size_t len = 0;

	while (isalpha((unsigned char)(*text)[len]))
		len++;
	for (; units->name; units++) {
		if (strlen(units->name) != len || strncmp(units->name, *text, len) != 0)
			continue;
		*text += len;
		return units;
	}
	return NULL;
}

/* One number with its unit, added to *total. */
static int take_quantity(const char **text, const struct unit *units, uint64_t *total)
{
	const struct unit *unit;
	struct decimal decimal;
	uint64_t value;
	int r = take_decimal(text, &decimal);

	if (r < 0)
		return r;
	unit = take_unit(text, units);
	if (!unit)
		return -EINVAL;
	if (__builtin_mul_overflow(decimal.whole, unit->factor, &value))
		return -ERANGE;
	value += (uint64_t)((unsigned __int128)decimal.billionths * unit->factor / NSEC_PER_SEC);
	if (__builtin_add_overflow(*total, value, total))
		return -ERANGE;
	return 0;
}

int units_parse_duration(const char *text, uint64_t *ret_ns)
{
	uint64_t total = 0;

	do {
		int r = take_quantity(&text, durations, &total);

		if (r < 0)
			return r;
		while (*text == ' ')
			text++;
	} while (*text);
	if (total > DURATION_MAX)
		return -ERANGE;
	*ret_ns = total;
	return 0;
}

int units_parse_size(const char *text, uint64_t *ret_bytes)
{
	uint64_t total = 0;
	int r = take_quantity(&text, sizes, &total);

	if (r < 0)
		return r;
	if (*text)
		return -EINVAL;
	*ret_bytes = total;
	return 0;
}

int units_parse_number(const char *text, int64_t least, int64_t most, int64_t *ret_value)
{
	bool negative = least < 0 && *text == '-';
	const char *p = text + negative;
	long long value;
	char *end;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno == ERANGE || value < least || value > most)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

const char *units_duration_text(char text[UNITS_TEXT_MAX], uint64_t ns)
{
	static const struct {
		uint64_t from, large, small;
		const char *large_name, *small_name;
	} forms[] = {
		{ DAY, DAY, HOUR, "d", "h" },
		{ HOUR, HOUR, MINUTE, "h", "min" },
		{ MINUTE, MINUTE, NSEC_PER_SEC, "min", "s" },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (ns < forms[i].from)
			continue;
		snprintf(text, UNITS_TEXT_MAX, "%" PRIu64 " %s %" PRIu64 " %s", (uint64_t)(ns / forms[i].large),
			 forms[i].large_name, (uint64_t)(ns % forms[i].large / forms[i].small),
			 forms[i].small_name);
		return text;
	}
	if (ns >= 10 * NSEC_PER_SEC)
		snprintf(text, UNITS_TEXT_MAX, "%" PRIu64 " s", (uint64_t)(ns / NSEC_PER_SEC));
	else
		snprintf(text, UNITS_TEXT_MAX, "%.1f s", (double)ns / (double)NSEC_PER_SEC);
	return text;
}
