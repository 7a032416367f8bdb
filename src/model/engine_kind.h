/* Which engine is to trace, or does: as people write it, in options, files and messages. */
#ifndef ALLOCWATCH_MODEL_ENGINE_KIND_H
#define ALLOCWATCH_MODEL_ENGINE_KIND_H

enum engine_kind { ENGINE_AUTO, ENGINE_INT3, ENGINE_RING };

/* The names, by their number; ends with NULL. */
extern const char *const engine_kinds[];
#define ENGINE_KINDS_TEXT "auto, int3 or ring"

/* What threads of a tracer are called that help to read its ring, whatever else it does. */
#define ENGINE_HELPER_NAME "ring-ahead"

/* The enum engine_kind of this name, or -EINVAL. */
int engine_kind_by_name(const char *name);

#endif
