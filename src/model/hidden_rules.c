#include "model/hidden_rules.h"

#include "base/vec.h"
#include "model/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rule {
	char *text;
	const char *pattern;       /* in the text */
	enum hidden_kind kind;
	bool whole_path;           /* of an object or a file: the pattern has a slash */
};

struct hidden_rules {
	VEC_OF(struct rule) list;
	uint64_t number;           /* no other set has it */
	unsigned references;
};

static uint64_t last_number;
static struct hidden_rules first = { .references = 1 }, *current = &first;
static _Thread_local const struct hidden_rules *held;

static const struct {
	const char *prefix;
	enum hidden_kind kind;
} prefixes[] = {
	{ "@function=", HIDDEN_FUNCTION }, { "@object=", HIDDEN_OBJECT }, { "@file=", HIDDEN_FILE },
};

static int refuse(const char **ret_reason, const char *reason)
{
	*ret_reason = reason;
	return -EINVAL;
}

static int parse(const char *text, struct rule *ret, const char **ret_reason)
{
	struct rule rule = { .pattern = text, .kind = HIDDEN_FUNCTION };

	if (strlen(text) >= HIDDEN_RULE_LENGTH_MAX)
		return refuse(ret_reason, "is longer than 1023 bytes");
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (strncmp(text, prefixes[i].prefix, strlen(prefixes[i].prefix)) != 0)
			continue;
		rule.pattern = text + strlen(prefixes[i].prefix);
		rule.kind = prefixes[i].kind;
	}
	if (*rule.pattern == '\0')
		return refuse(ret_reason, "has no pattern");
	if (*rule.pattern == '@')
		return refuse(ret_reason, "begins with none of @function=, @object=, @file=");
	if (strchr(text, '\n'))
		return refuse(ret_reason, "has more than one line");
	rule.whole_path = rule.kind != HIDDEN_FUNCTION && strchr(rule.pattern, '/');
	*ret = rule;
	return 0;
}

int hidden_rule_check(const char *text, const char **ret_reason)
{
	struct rule rule;

	return parse(text, &rule, ret_reason);
}

/* --- sets --- */

struct hidden_rules *hidden_rules_new(void)
{
	struct hidden_rules *rules = calloc(1, sizeof(*rules));

	if (!rules)
		return NULL;
	rules->references = 1;
	rules->number = ++last_number;
	return rules;
}

static void clear(struct hidden_rules *rules)
{
	for (size_t i = 0; i < rules->list.count; i++)
		free(rules->list.items[i].text);
	vec_fini(&rules->list);
}

static bool is_known(const struct hidden_rules *rules, const char *text)
{
	for (size_t i = 0; i < rules->list.count; i++) {
		if (strcmp(rules->list.items[i].text, text) == 0)
			return true;
	}
	return false;
}

int hidden_rules_add_to(struct hidden_rules *rules, const char *text, const char **ret_reason)
{
	struct rule rule, *slot;
	int r = parse(text, &rule, ret_reason);

	if (r < 0 || is_known(rules, text))
		return r;
	if (rules->list.count == HIDDEN_RULES_MAX)
		return -E2BIG;
	rule.text = strdup(text);
	slot = rule.text ? vec_push(&rules->list) : NULL;
	if (!slot) {
		free(rule.text);
		return -ENOMEM;
	}
	rule.pattern = rule.text + (rule.pattern - text);
	*slot = rule;
	return 0;
}

/* --- which set is seen --- */

struct hidden_rules *hidden_rules_ref(void)
{
	current->references++;
	return current;
}

void hidden_rules_unref(struct hidden_rules *rules)
{
	if (!rules || --rules->references > 0 || rules == &first)
		return;
	clear(rules);
	free(rules);
}

void hidden_rules_put_in_force(struct hidden_rules *rules)
{
	struct hidden_rules *old = current;

	current = rules;
	hidden_rules_unref(old);
}

void hidden_rules_see(const struct hidden_rules *rules)
{
	held = rules;
}

static const struct hidden_rules *seen(void)
{
	return held ? held : current;
}

uint64_t hidden_rules_number(void)
{
	return seen()->number;
}

/* --- the set that this thread sees --- */

int hidden_rules_add(const char *text, const char **ret_reason)
{
	return hidden_rules_add_to(current, text, ret_reason);
}

size_t hidden_rules_count(void)
{
	return seen()->list.count;
}

const char *hidden_rules_text(size_t i)
{
	return seen()->list.items[i].text;
}

bool hidden_rules_have(enum hidden_kind kind)
{
	const struct hidden_rules *rules = seen();

	for (size_t i = 0; i < rules->list.count; i++) {
		if (rules->list.items[i].kind == kind)
			return true;
	}
	return false;
}

static bool matches(const struct rule *rule, const char *text)
{
	const char *slash = rule->kind == HIDDEN_FUNCTION || rule->whole_path ? NULL : strrchr(text, '/');

	return fnmatch_python(rule->pattern, slash ? slash + 1 : text);
}

bool hidden_rules_match(enum hidden_kind kind, const char *text)
{
	const struct hidden_rules *rules = seen();

	for (size_t i = 0; i < rules->list.count; i++) {
		if (rules->list.items[i].kind == kind && matches(&rules->list.items[i], text))
			return true;
	}
	return false;
}

void hidden_rules_clear(void)
{
	clear(current);
}
