/* Packs resolved locations into ANSWERS messages. */
#ifndef ALLOCWATCH_SYMBOL_ANSWERS_H
#define ALLOCWATCH_SYMBOL_ANSWERS_H

#include "symbol/symbol.h"
#include "symbol/wire.h"

struct answers;

struct answers *answers_new(void);                            /* NULL: no memory */
void answers_free(struct answers *answers);                   /* accepts NULL */

/* Begins a message about queries from `first` on. */
void answers_begin(struct answers *answers, uint32_t serial, uint32_t module, uint32_t first);
/* Adds the next query's locations; false when the message has no room for them: send it, begin
 * another, add again.  A text too long even for an empty message is left out. */
bool answers_add(struct answers *answers, const struct symbol_location *locations, size_t count);
/* The message says that files were missing. */
void answers_set_incomplete(struct answers *answers);
uint32_t answers_count(const struct answers *answers);
/* The finished message; good until the next begin. */
const void *answers_finish(struct answers *answers, size_t *ret_len);

#endif
