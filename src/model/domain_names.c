#include "model/domain_names.h"

#include "base/units.h"
#include "model/event.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	uint32_t domain;
} built_in[] = {
	{ "malloc", DOMAIN_MALLOC }, { "mmap", DOMAIN_MMAP }, { "new", DOMAIN_NEW },
	{ "python", DOMAIN_PYTHON }, { "new[]", DOMAIN_NEW_ARRAY }, { "user", DOMAIN_USER },
};
#define BUILT_IN (sizeof(built_in) / sizeof(*built_in))

/* The first number has a name already. */
#define FIRST_OF_USERS (DOMAIN_USER + 1)

/* Filled in from the front; `users_known` is written last, and read first. */
static struct {
	char name[DOMAIN_NAME_SPACE];
	uint32_t domain;
} users[DOMAIN_NAMES_MAX];
static size_t users_known;

static size_t count_users(void)
{
	return __atomic_load_n(&users_known, __ATOMIC_ACQUIRE);
}

/* -1 when it is none. */
static int64_t parse_number(const char *text)
{
	int64_t number;

	return units_parse_number(text, 0, UINT32_MAX, &number) < 0 ? -1 : number;
}

static int64_t find_built_in(const char *name)
{
	for (size_t i = 0; i < BUILT_IN; i++) {
		if (strcmp(built_in[i].name, name) == 0)
			return built_in[i].domain;
	}
	return -1;
}

static int64_t find_users(const char *name)
{
	size_t count = count_users();

	for (size_t i = 0; i < count; i++) {
		if (strcmp(users[i].name, name) == 0)
			return users[i].domain;
	}
	return -1;
}

int64_t domain_by_name(const char *name)
{
	int64_t domain = find_built_in(name);

	if (domain < 0)
		domain = find_users(name);
	return domain < 0 ? parse_number(name) : domain;
}

static const char *known_name(uint32_t domain)
{
	size_t count = count_users();

	for (size_t i = 0; i < BUILT_IN; i++) {
		if (built_in[i].domain == domain)
			return built_in[i].name;
	}
	for (size_t i = 0; i < count; i++) {
		if (users[i].domain == domain)
			return users[i].name;
	}
	return NULL;
}

const char *domain_name(uint32_t domain, char text[DOMAIN_TEXT_MAX])
{
	const char *name = known_name(domain);

	if (name)
		return name;
	snprintf(text, DOMAIN_TEXT_MAX, "%" PRIu32, domain);
	return text;
}

static uint32_t traceable(const char *name, size_t len)
{
	static const uint32_t domains[] = { DOMAIN_MALLOC, DOMAIN_MMAP, DOMAIN_NEW };
	char text[DOMAIN_TEXT_MAX];

	for (size_t i = 0; i < sizeof(domains) / sizeof(*domains); i++) {
		const char *known = domain_name(domains[i], text);

		if (strlen(known) == len && strncmp(known, name, len) == 0)
			return 1u << domains[i];
	}
	return 0;
}

uint32_t domain_list_parse(const char *list)
{
	uint32_t mask = 1u << DOMAIN_MALLOC;

	for (;;) {
		size_t len = strcspn(list, ",");
		uint32_t bit = traceable(list, len);

		if (bit == 0)
			return 0;
		mask |= bit;
		if (list[len] == '\0')
			return mask;
		list += len + 1;
	}
}

bool domain_is_built_in(const char *name)
{
	return find_built_in(name) >= 0;
}

/* Only the threads that give a new name a number wait for each other. */
static bool is_locked;

static void lock(void)
{
	while (__atomic_exchange_n(&is_locked, true, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(void)
{
	__atomic_store_n(&is_locked, false, __ATOMIC_RELEASE);
}

static void add(uint32_t domain, const char *name)
{
	size_t count = count_users();

	snprintf(users[count].name, sizeof(users[count].name), "%s", name);
	users[count].domain = domain;
	__atomic_store_n(&users_known, count + 1, __ATOMIC_RELEASE);
}

static int64_t add_new(const char *name)
{
	int64_t domain = find_users(name);
	uint32_t fresh = FIRST_OF_USERS;

	if (domain >= 0)
		return domain;
	if (count_users() == DOMAIN_NAMES_MAX)
		return -E2BIG;
	while (known_name(fresh))
		fresh++;
	add(fresh, name);
	return fresh;
}

int64_t domain_of_user(const char *name)
{
	int64_t domain = find_users(name);

	if (domain >= 0)
		return domain;
	lock();
	domain = add_new(name);
	unlock();
	return domain;
}

bool domain_name_is_well_formed(const char *name)
{
	size_t len = strlen(name);

	if (len >= DOMAIN_NAME_SPACE || !isalpha((unsigned char)name[0]) || domain_is_built_in(name))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
			return false;
	}
	return true;
}
