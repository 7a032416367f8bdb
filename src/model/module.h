/* The ELF objects of one process and where they are, or were, mapped.
 *
 * A module gets its id when it is first seen and keeps it for ever, so that a frame recorded as
 * (module, offset) means the same after dlclose and after another object took its addresses.  Only the
 * same file, when it is loaded once more, gets it again.
 * The map knows only the present.  No files are opened here: target/ fills it in. */
#ifndef ALLOCWATCH_MODEL_MODULE_H
#define ALLOCWATCH_MODEL_MODULE_H

#include "base/reader.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUILD_ID_MAX 64
#define MODULE_NONE UINT32_MAX

struct module {
	uint32_t id;                 /* its index in the map's modules */
	char *path;                  /* as the process sees it */
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_len;       /* 0: it has none */
	uint64_t device, inode;
	raddr bias;                  /* run-time address minus ELF virtual address */
	bool piece;                  /* of a file that is there elsewhere as well: nothing else of it is at this bias */
	bool mapped;                 /* false after dlclose or exec */
	bool left;                   /* nothing is kept of it any more but its id: the same file gets it again */
	bool back;                   /* it has, and is to be looked at as a new one is */
};

/* One executable mapping [start, end) of a module. */
struct module_range {
	raddr start, end;
	uint32_t module;
};

struct module_map {
	VEC_OF(struct module) modules;
	VEC_OF(struct module_range) ranges;     /* sorted by start, not overlapping */
	uint64_t generation;                    /* changes with every change of the ranges */
};

void module_map_init(struct module_map *map);
void module_map_fini(struct module_map *map);

/* Adds a module (path and build_id are copied) and returns its id; -ENOMEM, or -ENOSPC past the
 * limit of MODULES_MAX. */
#define MODULES_MAX 65536
int64_t module_map_add(struct module_map *map, const struct module *module);
/* A module of the same file (path, inode, build-id) that has `left` is there again, at another place: its id; -ENOENT.
 * What is loaded and unloaded without an end needs no more ids than it has files. */
int64_t module_map_take_back(struct module_map *map, const struct module *module);
/* Adds an executable range; -EEXIST when it overlaps one that is there, -EINVAL when empty or of
 * no module, -ENOMEM, -ENOSPC past the limit of MODULE_RANGES_MAX. */
#define MODULE_RANGES_MAX 262144
int module_map_add_range(struct module_map *map, raddr start, raddr end, uint32_t module);
/* Takes away all ranges of a module and marks it unmapped. */
void module_map_remove(struct module_map *map, uint32_t module);
/* The range that holds an address, or NULL. */
const struct module_range *module_map_find(const struct module_map *map, raddr address);
size_t module_map_memory(const struct module_map *map);      /* beyond the struct itself */

#endif
