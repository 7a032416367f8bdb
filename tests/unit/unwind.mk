if HAVE_CHECK
unwind_cflags = $(AM_CFLAGS) -D_GNU_SOURCE -I$(srcdir)/tests/bench $(CHECK_CFLAGS) $(DW_CFLAGS) $(UNWIND_CFLAGS)
unwind_libs = src/libaw_unwind.a src/libarch.a src/libmodel.a src/libbase.a $(DW_LIBS) $(ELF_LIBS) \
	$(UNWIND_LIBS) -lunwind $(ZYDIS_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_unwind tests/unit/check_unwind_parts tests/unit/check_unwind_hostile \
	tests/unit/check_cfi_program tests/unit/check_unknown tests/unit/check_way_out
TESTS += tests/unit/check_unwind tests/unit/check_unwind_parts tests/unit/check_unwind_hostile \
	tests/unit/check_cfi_program tests/unit/check_unknown tests/unit/check_way_out

# Code whose stacks are tested is built as programs are, whatever the rest is built with.
tests_unit_check_unwind_SOURCES = tests/unit/check_unwind.c \
	tests/unit/local_libunwind.c \
	tests/unit/unwind_fixture.c tests/unit/unwind_fixture.h \
	tests/bench/process_map.c tests/bench/process_map.h
tests_unit_check_unwind_CFLAGS = $(unwind_cflags) -O2 -fomit-frame-pointer -fno-optimize-sibling-calls
tests_unit_check_unwind_LDFLAGS = -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
tests_unit_check_unwind_LDADD = $(unwind_libs)

# Its linkage table must be of the kind that binds lazily.
tests_unit_check_unwind_parts_SOURCES = tests/unit/check_unwind_parts.c \
	tests/unit/unwind_fixture.c tests/unit/unwind_fixture.h \
	tests/bench/process_map.c tests/bench/process_map.h
tests_unit_check_unwind_parts_CFLAGS = $(unwind_cflags) -fplt
tests_unit_check_unwind_parts_LDFLAGS = -Wl,-z,lazy
tests_unit_check_unwind_parts_LDADD = $(unwind_libs)

tests_unit_check_unwind_hostile_SOURCES = tests/unit/check_unwind_hostile.c
tests_unit_check_unwind_hostile_CFLAGS = $(unwind_cflags)
tests_unit_check_unwind_hostile_LDADD = $(unwind_libs)

tests_unit_check_cfi_program_SOURCES = tests/unit/check_cfi_program.c
tests_unit_check_cfi_program_CFLAGS = $(unwind_cflags)
tests_unit_check_cfi_program_LDADD = $(unwind_libs)

tests_unit_check_unknown_SOURCES = tests/unit/check_unknown.c
tests_unit_check_unknown_CFLAGS = $(unwind_cflags)
tests_unit_check_unknown_LDADD = $(unwind_libs)

tests_unit_check_way_out_SOURCES = tests/unit/check_way_out.c tests/unit/elf_functions.c tests/unit/elf_functions.h
tests_unit_check_way_out_CFLAGS = $(unwind_cflags) $(ELF_CFLAGS)
tests_unit_check_way_out_LDADD = $(unwind_libs)
endif
