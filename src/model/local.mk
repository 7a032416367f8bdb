# model: see doc/ARCHITECTURE.md
noinst_LIBRARIES += src/libmodel.a
src_libmodel_a_SOURCES = \
	src/model/addition.c \
	src/model/alarm.c src/model/alarm.h \
	src/model/allocators.c src/model/allocators.h \
	src/model/block_shard.c src/model/block_shard.h \
	src/model/block_table.c src/model/block_table.h \
	src/model/builds.c src/model/builds.h \
	src/model/definition.c src/model/definition.h \
	src/model/diff.c \
	src/model/domain_names.c src/model/domain_names.h \
	src/model/engine_kind.c src/model/engine_kind.h \
	src/model/event.h \
	src/model/filter.c src/model/filter.h \
	src/model/filter_match.c \
	src/model/fnmatch.c \
	src/model/grouping.c src/model/grouping.h \
	src/model/grouping_rank.c \
	src/model/heap.c src/model/heap.h src/model/heap_private.h \
	src/model/heap_mappings.c \
	src/model/heap_resize.c \
	src/model/heap_visit.c \
	src/model/hidden.c src/model/hidden.h \
	src/model/hidden_rules.c src/model/hidden_rules.h \
	src/model/id_table.c src/model/id_table.h \
	src/model/index.c src/model/index.h \
	src/model/layout.c src/model/layout.h \
	src/model/match.c src/model/match.h \
	src/model/measure.c src/model/measure.h \
	src/model/misuses.c src/model/misuses.h \
	src/model/module.c src/model/module.h \
	src/model/names.c src/model/names.h \
	src/model/occasion.c src/model/occasion.h \
	src/model/ptrace_wish.c src/model/ptrace_wish.h \
	src/model/ranges.c src/model/ranges.h \
	src/model/sampling.c src/model/sampling.h \
	src/model/seen.c src/model/seen.h \
	src/model/snapshot.c src/model/snapshot.h \
	src/model/snapshot_check.c \
	src/model/snapshot_image.h \
	src/model/snapshot_name.c src/model/snapshot_name.h \
	src/model/snapshot_read.c \
	src/model/snapshot_write.c \
	src/model/stack.c src/model/stack.h \
	src/model/statistics.c src/model/statistics.h \
	src/model/steps.c src/model/steps.h \
	src/model/thread_table.c src/model/thread_table.h \
	src/model/traceback.c src/model/traceback.h \
	src/model/trend.c src/model/trend.h \
	src/model/utf8.c src/model/utf8.h \
	src/model/walk.c src/model/walk.h
