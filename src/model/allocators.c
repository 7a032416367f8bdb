#include "model/allocators.h"

#include "base/reason.h"
#include "base/units.h"
#include "model/domain_names.h"
#include "model/filter.h"

#include <errno.h>
#include <string.h>

#define ARGUMENT_WORD_MAX 16

struct parser {
	const char *at;
	char **reason;
};

static void skip_space(struct parser *parser)
{
	while (*parser->at == ' ' || *parser->at == '\t')
		parser->at++;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\0';
}

/* --- a name --- */

static int take_name(struct parser *parser, struct allocator *allocator)
{
	size_t len = strcspn(parser->at, " \t(");

	if (len >= sizeof(allocator->name))
		return reason_set(parser->reason, -EINVAL, "has a name of more than %zu characters", sizeof(allocator->name) - 1);
	memcpy(allocator->name, parser->at, len);
	if (domain_is_built_in(allocator->name))
		return reason_set(parser->reason, -EINVAL, "cannot be named '%s', which is a domain already", allocator->name);
	if (parser->at[len] == '(' || !domain_name_is_well_formed(allocator->name))
		return reason_set(parser->reason, -EINVAL, "begins with no name, a letter and then letters, digits, '_' and '-': "
				  "NAME FUNCTION(ARGUMENT, ...)...");
	parser->at += len;
	return 0;
}

/* --- an argument --- */

static int8_t *field_of(struct allocator_function *function, const char *word)
{
	if (strcmp(word, "size") == 0)
		return &function->size;
	if (strcmp(word, "count") == 0)
		return &function->count;
	if (strcmp(word, "old") == 0)
		return &function->old;
	return strcmp(word, "result") == 0 ? &function->result : NULL;
}

static int take_argument(struct parser *parser, struct allocator_function *function, unsigned number)
{
	size_t len = strcspn(parser->at, " \t,)");
	char word[ARGUMENT_WORD_MAX] = "";
	int8_t *field;

	if (len >= sizeof(word))
		return reason_set(parser->reason, -EINVAL, "calls an argument of %s '%.40s'; there are size, count, align, old, result "
				  "and -", function->symbol, parser->at);
	memcpy(word, parser->at, len);
	parser->at += len;
	if (strcmp(word, "-") == 0 || strcmp(word, "align") == 0)
		return 0;
	field = field_of(function, word);
	if (!field)
		return reason_set(parser->reason, -EINVAL, "calls an argument of %s '%s'; there are size, count, align, old, result "
				  "and -", function->symbol, word);
	if (*field != ALLOCATOR_NO_ARGUMENT)
		return reason_set(parser->reason, -EINVAL, "has two arguments '%s' of %s", word, function->symbol);
	*field = (int8_t)number;
	return 0;
}

/* Behind the opening parenthesis. */
static int take_arguments(struct parser *parser, struct allocator_function *function)
{
	unsigned number = 0;
	int r;

	for (;;) {
		if (number == ALLOCATOR_ARGUMENTS_MAX)
			return reason_set(parser->reason, -EINVAL, "has more than %d arguments of %s", ALLOCATOR_ARGUMENTS_MAX,
					  function->symbol);
		skip_space(parser);
		r = take_argument(parser, function, number++);
		if (r < 0)
			return r;
		skip_space(parser);
		if (*parser->at == ')') {
			parser->at++;
			return 0;
		}
		if (*parser->at != ',')
			return reason_set(parser->reason, -EINVAL, "has no ) behind the arguments of %s", function->symbol);
		parser->at++;
	}
}

/* --- a function --- */

static int copy_part(struct parser *parser, char to[ALLOCATOR_SYMBOL_MAX], const char *from, size_t len)
{
	if (len >= ALLOCATOR_SYMBOL_MAX)
		return reason_set(parser->reason, -EINVAL, "has a name of more than %d bytes", ALLOCATOR_SYMBOL_MAX - 1);
	memcpy(to, from, len);
	to[len] = '\0';
	return 0;
}

/* "[OBJECT:]SYMBOL(" */
static int take_symbol(struct parser *parser, struct allocator_function *function)
{
	size_t len = strcspn(parser->at, " \t("), colon = len;
	int r = 0;

	if (parser->at[len] != '(')
		return reason_set(parser->reason, -EINVAL, "has no arguments behind '%.*s': FUNCTION(ARGUMENT, ...)",
				  len < 80 ? (int)len : 80, parser->at);
	while (colon > 0 && parser->at[colon - 1] != ':')
		colon--;
	if (colon > 0)
		r = copy_part(parser, function->object, parser->at, colon - 1);
	if (r == 0)
		r = copy_part(parser, function->symbol, parser->at + colon, len - colon);
	if (r == 0 && (*function->symbol == '\0' || (colon > 0 && *function->object == '\0')))
		return reason_set(parser->reason, -EINVAL, "has a function without a name, or an object without one");
	parser->at += len + 1;
	return r;
}

static int take_fixed_size(struct parser *parser, struct allocator_function *function)
{
	size_t len = 0;
	char number[24];
	int64_t bytes;

	if (*parser->at == '=') {
		parser->at++;
		len = strcspn(parser->at, " \t");
		if (len == 0 || len >= sizeof(number))
			return reason_set(parser->reason, -EINVAL, "has no number of bytes behind the = of %s", function->symbol);
		memcpy(number, parser->at, len);
		number[len] = '\0';
		if (units_parse_number(number, 1, INT64_MAX, &bytes) < 0)
			return reason_set(parser->reason, -EINVAL, "has '%s' behind the = of %s, which is no number of bytes", number,
					  function->symbol);
		function->fixed_size = (uint64_t)bytes;
		parser->at += len;
	}
	return is_space(*parser->at) ? 0 :
	       reason_set(parser->reason, -EINVAL, "has '%.40s' behind %s, where a space belongs", parser->at, function->symbol);
}

static int check_function(struct parser *parser, const struct allocator_function *function)
{
	bool allocates = allocator_function_allocates(function);

	if (function->size != ALLOCATOR_NO_ARGUMENT && function->fixed_size > 0)
		return reason_set(parser->reason, -EINVAL, "says twice how much %s allocates, by size and by =", function->symbol);
	if (function->count != ALLOCATOR_NO_ARGUMENT && function->size == ALLOCATOR_NO_ARGUMENT)
		return reason_set(parser->reason, -EINVAL, "has a count of %s, but no size", function->symbol);
	if (function->result != ALLOCATOR_NO_ARGUMENT && !allocates)
		return reason_set(parser->reason, -EINVAL, "has a result of %s, but no size", function->symbol);
	if (!allocates && function->old == ALLOCATOR_NO_ARGUMENT)
		return reason_set(parser->reason, -EINVAL, "says neither what %s allocates (size, or =BYTES) nor what it frees (old)",
				  function->symbol);
	return 0;
}

static int take_function(struct parser *parser, struct allocator *allocator)
{
	struct allocator_function function = { .size = ALLOCATOR_NO_ARGUMENT, .count = ALLOCATOR_NO_ARGUMENT,
					       .old = ALLOCATOR_NO_ARGUMENT, .result = ALLOCATOR_NO_ARGUMENT };
	int r;

	if (allocator->function_count == ALLOCATOR_FUNCTIONS_MAX)
		return reason_set(parser->reason, -EINVAL, "has more than %d functions", ALLOCATOR_FUNCTIONS_MAX);
	if ((r = take_symbol(parser, &function)) < 0 || (r = take_arguments(parser, &function)) < 0 ||
	    (r = take_fixed_size(parser, &function)) < 0 || (r = check_function(parser, &function)) < 0)
		return r;
	allocator->functions[allocator->function_count++] = function;
	return 0;
}

static bool allocates(const struct allocator *allocator)
{
	for (size_t i = 0; i < allocator->function_count; i++) {
		if (allocator_function_allocates(&allocator->functions[i]))
			return true;
	}
	return false;
}

int allocator_parse(const char *text, struct allocator *ret, char **ret_reason)
{
	struct parser parser = { text, ret_reason };
	struct allocator allocator = { .function_count = 0 };
	int r;

	if (strlen(text) >= ALLOCATOR_TEXT_MAX)
		return reason_set(ret_reason, -EINVAL, "is longer than %d bytes", ALLOCATOR_TEXT_MAX - 1);
	skip_space(&parser);
	r = take_name(&parser, &allocator);
	for (skip_space(&parser); r == 0 && *parser.at; skip_space(&parser))
		r = take_function(&parser, &allocator);
	if (r < 0)
		return r;
	if (!allocates(&allocator))
		return reason_set(ret_reason, -EINVAL, "names no function that allocates: one with a size, or with =BYTES");
	*ret = allocator;
	return 0;
}

int allocator_function_arguments(const struct allocator_function *function)
{
	const int8_t numbers[] = { function->size, function->count, function->old, function->result };
	int last = ALLOCATOR_NO_ARGUMENT;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		last = numbers[i] > last ? numbers[i] : last;
	return last + 1;
}

bool allocator_function_is_in(const struct allocator_function *function, const char *path)
{
	const char *slash = strchr(function->object, '/') ? NULL : strrchr(path, '/');

	return *function->object == '\0' || fnmatch_python(function->object, slash ? slash + 1 : path);
}
