/* Names of users' domains between a daemon and a client, whose numbers for them may differ.  Private to src/varlink. */
#ifndef ALLOCWATCH_VARLINK_DOMAINS_H
#define ALLOCWATCH_VARLINK_DOMAINS_H

#include "model/event.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* By number: whether it is named, or what number its name has here; 0: the same. */
struct domain_set {
	bool has[DOMAIN_MAX + 1];
};
struct domain_map {
	uint16_t here[DOMAIN_MAX + 1];
};

static inline void domain_set_add(struct domain_set *set, uint32_t domain)
{
	if (domain <= DOMAIN_MAX)
		set->has[domain] = true;
}

/* {"pool": 101}: the set's domains that a user has named. */
json_t *codec_domains(const struct domain_set *set);
/* Gives each name of such an object (NULL: there are none) a number here.  0 or -EBADMSG. */
int codec_take_domains(const json_t *domains, struct domain_map *map);

static inline uint32_t domain_map_here(const struct domain_map *map, uint32_t domain)
{
	return domain <= DOMAIN_MAX && map->here[domain] ? map->here[domain] : domain;
}

#endif
