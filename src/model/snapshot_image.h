/* The image of a snapshot as a tracer hands it over: between two programs of one build on one
 * machine, so plain structs in the machine's order; not a file format.
 *
 *	image_head; command, exe; modules, each followed by its path; frames; nodes; traces; blocks
 *
 * Texts are padded to 8 bytes.  Frame 0 and node 0 are not written. */
#ifndef ALLOCWATCH_MODEL_SNAPSHOT_IMAGE_H
#define ALLOCWATCH_MODEL_SNAPSHOT_IMAGE_H

#include "model/snapshot.h"

#define IMAGE_MAGIC "AWIMAGE\0"
#define IMAGE_VERSION 3
#define IMAGE_ALIGN 8

struct image_head {
	char magic[8];
	uint32_t version, frames_limit;
	int64_t pid;
	uint64_t start_time, taken_ns, attached_ns, clock_ns, sample_bytes;
	struct heap_counters counters;
	struct snapshot_unknown unknown;
	uint64_t modules, frames, nodes, traces, blocks;
	uint32_t command_len, exe_len;
	uint8_t exact, has_blocks, pad[6];
};

struct image_module {
	uint32_t path_len, build_id_len;
	uint8_t build_id[BUILD_ID_MAX];
};

struct image_frame {
	uint64_t offset;
	uint32_t module;
	uint16_t kind, pad;
};

#endif
