noinst_LIBRARIES += src/libtarget.a
src_libtarget_a_CFLAGS = $(AM_CFLAGS) $(ELF_CFLAGS)
src_libtarget_a_SOURCES = \
	src/target/access.c src/target/access.h \
	src/target/action.c src/target/action.h \
	src/target/again.c src/target/again.h \
	src/target/attach.h \
	src/target/awaited.c src/target/awaited.h \
	src/target/bp.c src/target/bp.h \
	src/target/child.c \
	src/target/elf_file.c src/target/elf_file.h \
	src/target/elf_table.c src/target/elf_table.h \
	src/target/faults.c src/target/faults.h \
	src/target/handlers.c src/target/handlers.h \
	src/target/held.c src/target/held.h \
	src/target/holes.c src/target/holes.h \
	src/target/inject.c src/target/inject.h \
	src/target/jumps.c src/target/jumps.h src/target/jumps_private.h \
	src/target/jumps_adopt.c \
	src/target/jumps_pads.c src/target/jumps_ring.c src/target/jumps_settle.c src/target/jumps_stacks.c \
	src/target/layout.c src/target/layout.h \
	src/target/loader.c src/target/loader.h \
	src/target/mapped_file.c src/target/mapped_file.h \
	src/target/maps.c src/target/maps.h \
	src/target/maps_query.c src/target/maps_query.h \
	src/target/masks.c src/target/masks.h \
	src/target/mem.c \
	src/target/memory.c \
	src/target/modules.c \
	src/target/park.c src/target/park.h \
	src/target/order.c src/target/order.h \
	src/target/process.c src/target/process.h \
	src/target/ptrace.c src/target/ptrace.h \
	src/target/resident.c src/target/resident.h \
	src/target/resident_adopt.c \
	src/target/resident_area.c src/target/resident_area.h \
	src/target/resume.c \
	src/target/rights.c src/target/rights.h \
	src/target/seize.c \
	src/target/sharers.c src/target/sharers.h \
	src/target/signals.c src/target/signals.h \
	src/target/stacks.c src/target/stacks.h \
	src/target/stop.c src/target/stop.h \
	src/target/target.c src/target/target.h \
	src/target/task.c \
	src/target/undo.c
