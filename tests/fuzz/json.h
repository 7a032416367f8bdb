/* Changes of JSON messages, each ended by a NUL byte, that leave them JSON. */
#ifndef ALLOCWATCH_TESTS_FUZZ_JSON_H
#define ALLOCWATCH_TESTS_FUZZ_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* A value of the kinds that a reader must tell apart. */
json_t *fuzz_pick_json(void);
/* Replaces, removes or doubles something in it. */
void fuzz_change_json(json_t *json);
/* Changes one of the messages behind the first `skip` bytes by `change`; one that is none is replaced by `otherwise`. */
uint8_t *fuzz_change_message(const uint8_t *data, size_t len, size_t skip, void (*change)(json_t *message),
			     const char *otherwise, size_t *ret_len);

#endif
