/* The names of domains: tracemalloc's kind of number, and what people call it.
 *
 * Users name theirs (see allocators.h).  Such a name has one number as long as the process lives, so that snapshots of several
 * processes agree.  Any thread may ask, and add. */
#ifndef ALLOCWATCH_MODEL_DOMAIN_NAMES_H
#define ALLOCWATCH_MODEL_DOMAIN_NAMES_H

#include "model/allocators.h"

#include <stdbool.h>
#include <stdint.h>

#define DOMAIN_NAMES_MAX 64                /* of users */

/* "malloc" <-> 0, ..., and users' names; numbers are accepted too.  -1 when unknown. */
int64_t domain_by_name(const char *name);
/* The same back: a static text, or its number, in `text`. */
#define DOMAIN_TEXT_MAX 12
const char *domain_name(uint32_t domain, char text[DOMAIN_TEXT_MAX]);
/* A list of those that an attach can be asked for ("malloc,mmap"), as bits 1 << number; malloc is always among them.  0: it is no
 * such list. */
uint32_t domain_list_parse(const char *list);
/* Not a user's, nor a number. */
bool domain_is_built_in(const char *name);

/* The number of a user's domain, which is a new one when the name is new; -E2BIG: there are DOMAIN_NAMES_MAX. */
int64_t domain_of_user(const char *name);
/* A letter, then letters, digits, '_' and '-', less than DOMAIN_NAME_SPACE characters, and none that is built in. */
bool domain_name_is_well_formed(const char *name);

#endif
