noinst_LIBRARIES += src/libprobe.a
src_libprobe_a_CFLAGS = $(AM_CFLAGS) $(ELF_CFLAGS)
src_libprobe_a_SOURCES = \
	src/probe/calls.c src/probe/calls.h \
	src/probe/catalog.c src/probe/catalog.h \
	src/probe/described.c src/probe/described.h \
	src/probe/elf_code.c src/probe/elf_code.h \
	src/probe/engine.h \
	src/probe/engine_int3.c \
	src/probe/engine_loader.c \
	src/probe/engine_private.h \
	src/probe/engine_ring.c \
	src/probe/engine_ring_ahead.c \
	src/probe/engine_ring_copy.c \
	src/probe/engine_ring_held.c \
	src/probe/engine_ring_record.c src/probe/engine_ring_record.h \
	src/probe/engine_ring_sampling.c \
	src/probe/engine_ring_settle.c \
	src/probe/engine_ring_stacks.c \
	src/probe/engine_sites.c \
	src/probe/forms.c src/probe/forms.h \
	src/probe/plan.c src/probe/plan.h \
	src/probe/plan_libc.c src/probe/plan_windows.c src/probe/plan_private.h \
	src/probe/probe.h \
	src/probe/ring_ahead.c src/probe/ring_ahead.h src/probe/ring_ahead_private.h \
	src/probe/ring_ahead_helper.c \
	src/probe/ring_ahead_world.c \
	src/probe/ring_pressure.c src/probe/ring_pressure.h \
	src/probe/ring_stack.c src/probe/ring_stack.h \
	src/probe/serve.c src/probe/serve.h \
	src/probe/serve_mapping.c src/probe/serve_mapping.h \
	src/probe/tick_clock.c src/probe/tick_clock.h \
	src/probe/view.c src/probe/view.h
