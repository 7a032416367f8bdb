/* The filters that are typed into `allocwatch top`: words as --filter takes them, with spaces between. */
#ifndef ALLOCWATCH_CLI_TOP_FILTER_H
#define ALLOCWATCH_CLI_TOP_FILTER_H

#include "cli/top_model.h"

/* Takes the filters of `text` in place of those typed before.  0, -ENOMEM, or -EINVAL with a reason (a static
 * text), and all is as before. */
int top_filter_set(struct top *top, const char *text, const char **ret_reason);
void top_filter_clear(struct top *top);

#endif
