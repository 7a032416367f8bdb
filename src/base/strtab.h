/* Interned strings: equal strings have equal ids, id 0 is the empty string.
 * Strings are byte strings without NUL; nothing is said about their encoding. */
#ifndef ALLOCWATCH_BASE_STRTAB_H
#define ALLOCWATCH_BASE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

struct strtab;

struct strtab *strtab_new(void);                 /* NULL when there is no memory */
void strtab_free(struct strtab *strtab);         /* accepts NULL */

/* Returns the id of text (NULL counts as ""), adding a copy when it is new; negative errno:
 * -ENOMEM, -EOVERFLOW past INT32_MAX strings. */
int64_t strtab_add(struct strtab *strtab, const char *text);
int64_t strtab_add_len(struct strtab *strtab, const char *text, size_t len);
/* The string of an id that strtab_add returned; lives as long as the table. */
const char *strtab_get(const struct strtab *strtab, uint32_t id);
uint32_t strtab_count(const struct strtab *strtab);
size_t strtab_memory(const struct strtab *strtab);   /* bytes the table itself takes */

#endif
