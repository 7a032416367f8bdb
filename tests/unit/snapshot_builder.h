/* Snapshots made by hand, for tests. */
#ifndef ALLOCWATCH_TESTS_SNAPSHOT_BUILDER_H
#define ALLOCWATCH_TESTS_SNAPSHOT_BUILDER_H

#include "model/snapshot.h"

uint32_t build_module(struct snapshot *snapshot, const char *path);
/* A frame without names. */
uint32_t build_frame(struct snapshot *snapshot, uint32_t module, uint16_t kind, uint64_t offset);
/* Names the frame made last; the innermost call first, the last one not inlined. */
void build_location(struct snapshot *snapshot, const char *function, uint32_t function_offset,
		    const char *file, uint32_t line, bool inlined);
/* A call at FILE:LINE, as most are. */
uint32_t build_line(struct snapshot *snapshot, const char *function, const char *file, uint32_t line);
uint32_t build_node(struct snapshot *snapshot, uint32_t parent, uint32_t frame);
/* The stack of `count` frames, the outermost first. */
uint32_t build_stack(struct snapshot *snapshot, const uint32_t *frames, size_t count);
void build_trace(struct snapshot *snapshot, uint32_t stack, uint32_t domain, uint64_t blocks,
		 uint64_t bytes);

#endif
