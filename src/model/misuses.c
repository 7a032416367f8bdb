#include "model/misuses.h"

static bool is_alike(const struct misuse *a, const struct misuse *b)
{
	return a->kind == b->kind && a->made_stack == b->made_stack && a->freed_stack == b->freed_stack &&
	       a->made_form == b->made_form;
}

void misuses_note(struct misuses *misuses, const struct misuse *misuse)
{
	for (uint32_t i = 0; i < misuses->count; i++) {
		if (is_alike(&misuses->items[i], misuse)) {
			misuses->items[i].count++;
			return;
		}
	}
	if (misuses->count == MISUSES_MAX) {
		misuses->more++;
		return;
	}
	misuses->items[misuses->count] = *misuse;
	misuses->items[misuses->count++].count = 1;
}

const char *misuse_kind_name(enum misuse_kind kind)
{
	static const char *const names[MISUSE_KINDS] = {
		[MISUSE_MISMATCH] = "mismatch", [MISUSE_DOUBLE_FREE] = "double-free", [MISUSE_WILD_FREE] = "wild-free",
	};

	return names[kind];
}

const char *form_maker(uint32_t forms)
{
	return forms == FORM_MALLOC ? "malloc" : forms == FORM_NEW ? "new" : forms == FORM_NEW_ARRAY ? "new[]" : "";
}

const char *form_freer(uint32_t forms)
{
	return forms == FORM_MALLOC ? "free" : forms == FORM_NEW ? "delete" : forms == FORM_NEW_ARRAY ? "delete[]" : "";
}
