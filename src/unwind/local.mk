# unwind: see doc/ARCHITECTURE.md
noinst_LIBRARIES += src/libaw_unwind.a
src_libaw_unwind_a_CFLAGS = $(AM_CFLAGS) $(DW_CFLAGS) $(ELF_CFLAGS) $(UNWIND_CFLAGS)
src_libaw_unwind_a_SOURCES = \
	src/unwind/by_code.c src/unwind/by_code.h \
	src/unwind/cfi_cursor.h \
	src/unwind/cfi_entry.c src/unwind/cfi_entry.h \
	src/unwind/cfi_find.c src/unwind/cfi_find.h \
	src/unwind/cfi_functions.c src/unwind/cfi_functions.h \
	src/unwind/cfi_image.c src/unwind/cfi_image.h \
	src/unwind/cfi_program.c src/unwind/cfi_program.h \
	src/unwind/cfi_rows.c src/unwind/cfi_rows.h \
	src/unwind/cfi_section.c src/unwind/cfi_section.h \
	src/unwind/dwarf.c src/unwind/dwarf.h \
	src/unwind/endings.c src/unwind/endings.h \
	src/unwind/expression.c src/unwind/expression.h \
	src/unwind/framepointer.c src/unwind/framepointer.h \
	src/unwind/lookup.c src/unwind/lookup.h \
	src/unwind/libunwind.c src/unwind/libunwind.h \
	src/unwind/other_stack.c src/unwind/other_stack.h \
	src/unwind/stack_copy.c src/unwind/stack_copy.h \
	src/unwind/trail.c src/unwind/trail.h \
	src/unwind/trampoline.c src/unwind/trampoline.h \
	src/unwind/unwind.c src/unwind/unwind.h \
	src/unwind/unwinder.h \
	src/unwind/walk.c src/unwind/walk.h
