/* A program in Python that works out the same independently: one JSON document a line in and out. */
#ifndef ALLOCWATCH_TESTS_ORACLE_H
#define ALLOCWATCH_TESTS_ORACLE_H

#include <jansson.h>

/* script: in the source tree.  $PYTHON runs it, else /usr/bin/python3. */
void oracle_start(const char *script);
/* Takes the request; its answer, to be freed. */
json_t *oracle_ask(json_t *request);
/* It must have gone well. */
void oracle_stop(void);

/* Names travel as hexadecimal bytes. */
json_t *oracle_hex(const char *text);

#endif
