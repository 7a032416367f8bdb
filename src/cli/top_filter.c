#include "cli/top_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct filter_list {
	VEC_OF(struct filter) filters;
};

static void list_fini(struct filter_list *list)
{
	for (size_t i = 0; i < list->filters.count; i++)
		filter_fini(&list->filters.items[i]);
	vec_fini(&list->filters);
}

static int add(struct filter_list *list, const char *word, const char **ret_reason)
{
	struct filter filter, *slot;
	int r = filter_parse(word, &filter, ret_reason);

	if (r < 0)
		return r;
	slot = vec_push(&list->filters);
	if (!slot) {
		filter_fini(&filter);
		return -ENOMEM;
	}
	*slot = filter;
	return 0;
}

/* A space ends a word, but as "[ ]" it is part of a pattern. */
static size_t word_length(const char *text)
{
	size_t len = 0;

	while (text[len] && (text[len] != ' ' || (len > 0 && text[len - 1] == '[' && text[len + 1] == ']')))
		len++;
	return len;
}

static int parse(struct filter_list *list, const char *text, const char **ret_reason)
{
	char word[TOP_PROMPT_MAX];
	int r = 0;

	while (r == 0 && *(text += strspn(text, " "))) {
		size_t len = word_length(text);

		if (len >= sizeof(word)) {
			*ret_reason = "it is too long";
			return -EINVAL;
		}
		memcpy(word, text, len);
		word[len] = '\0';
		r = add(list, word, ret_reason);
		text += len;
	}
	return r;
}

/* All filters in a row, which borrows their texts. */
static int join(struct top *top, const struct filter_list *typed)
{
	size_t count = top->settings.filter_count;

	top->filters.count = 0;
	if (vec_reserve(&top->filters, count + typed->filters.count + 1) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		*vec_push(&top->filters) = top->settings.filters[i];
	for (size_t i = 0; i < typed->filters.count; i++)
		*vec_push(&top->filters) = typed->filters.items[i];
	return 0;
}

int top_filter_set(struct top *top, const char *text, const char **ret_reason)
{
	struct filter_list list = { 0 };
	int r = parse(&list, text, ret_reason);

	if (r == 0)
		r = join(top, &list);
	if (r < 0) {
		list_fini(&list);
		return r;
	}
	for (size_t i = 0; i < top->typed.count; i++)
		filter_fini(&top->typed.items[i]);
	vec_fini(&top->typed);
	top->typed.items = list.filters.items;
	top->typed.count = list.filters.count;
	top->typed.space = list.filters.space;
	return 0;
}

void top_filter_clear(struct top *top)
{
	for (size_t i = 0; i < top->typed.count; i++)
		filter_fini(&top->typed.items[i]);
	vec_fini(&top->typed);
	vec_fini(&top->filters);
}
