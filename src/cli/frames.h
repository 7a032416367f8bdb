/* A traceback of an answer, as text. */
#ifndef ALLOCWATCH_CLI_FRAMES_H
#define ALLOCWATCH_CLI_FRAMES_H

#include "export/text.h"

#include <jansson.h>

/* Prints a list of type Frame on stdout; 0 or -ENOMEM. */
int frames_print(const json_t *traceback, const struct text_style *style);

#endif
