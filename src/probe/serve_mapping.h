/* mmap(2) and its like: what is mapped and unmapped by a call. */
#ifndef ALLOCWATCH_PROBE_SERVE_MAPPING_H
#define ALLOCWATCH_PROBE_SERVE_MAPPING_H

#include "probe/serve.h"

/* sp: at the function's start. */
void serve_mapping_entry(struct serving *serving, raddr sp);
/* The call is pending no more. */
void serve_mapping_return(struct serving *serving, const struct call *call);
/* It will not return. */
void serve_mapping_left(const struct serving *serving, const struct call *call);

#endif
