#include "varlink/domains.h"

#include "model/domain_names.h"

#include <errno.h>
#include <string.h>

json_t *codec_domains(const struct domain_set *set)
{
	json_t *object = json_object();

	for (uint32_t domain = DOMAIN_USER + 1; object && domain <= DOMAIN_MAX; domain++) {
		char text[DOMAIN_TEXT_MAX];
		const char *name = set->has[domain] ? domain_name(domain, text) : text;

		if (name == text)
			continue;
		if (json_object_set_new(object, name, json_integer(domain)) < 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

int codec_take_domains(const json_t *domains, struct domain_map *map)
{
	json_t *number;
	const char *name;

	json_object_foreach((json_t *)domains, name, number) {
		json_int_t there = json_integer_value(number);
		int64_t here;

		if (there <= DOMAIN_USER || there > DOMAIN_MAX || !domain_name_is_well_formed(name))
			return -EBADMSG;
		here = domain_of_user(name);
		/* There are too many: the number stays its name. */
		if (here >= 0)
			map->here[there] = (uint16_t)here;
	}
	return 0;
}
