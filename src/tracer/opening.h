/* Opens files for the daemon with a user's rights, in a process without a target: debug files whose paths come out of files
 * that anybody may have made. */
#ifndef ALLOCWATCH_TRACER_OPENING_H
#define ALLOCWATCH_TRACER_OPENING_H

#include "tracer/link.h"

/* Becomes the user, the first time, and answers as wire.h says.  Only regular files of at most OPENING_BYTES_MAX,
 * on a file system of the kernel's own, are handed out, and of these only ELF files but where names are asked for. */
#define OPENING_BYTES_MAX (4ULL << 30)
void opening_send(struct link *link, const struct wire_open *request);

#endif
