/* The tracebacks of one group of `allocwatch top`, with source lines, as lines of text. */
#ifndef ALLOCWATCH_CLI_TOP_STACKS_H
#define ALLOCWATCH_CLI_TOP_STACKS_H

#include "cli/top_model.h"

/* Remembers the group at the cursor, if there is one.  0 or -ENOMEM. */
int top_stacks_choose(struct top *top);
void top_group_fini(struct top_group *group);
/* Makes top->lines of the newest figures.  0 or -ENOMEM. */
int top_stacks_make(struct top *top);
void top_stacks_clear(struct top *top);

#endif
