/* Lines of source files, for tracebacks and the pretty top.
 *
 * Only regular files are read, with the rights of whoever runs the client, and by root only those that everybody
 * may read; a path comes from somebody's debug information and may name anything.  Files are kept while the source lives. */
#ifndef ALLOCWATCH_CLI_SOURCE_H
#define ALLOCWATCH_CLI_SOURCE_H

#include <stdint.h>

#define SOURCE_FILE_MAX (16u << 20)      /* bytes of one file; a longer one has no lines */
#define SOURCE_TOTAL_MAX (256u << 20)    /* bytes of all files; past it no more are read */

struct source;

struct source *source_new(void);                 /* NULL when there is no memory */
void source_free(struct source *source);         /* accepts NULL */

/* Line number `line` (from 1) without the white space around it, NULL when it cannot be had.  Fits
 * text_source.line with the source as context; borrowed until the next call. */
const char *source_line(void *source, const char *file, uint32_t line);

#endif
