if HAVE_CHECK
check_PROGRAMS += tests/unit/check_insn tests/unit/check_displace tests/unit/check_move tests/unit/check_resident
TESTS += tests/unit/check_insn tests/unit/check_displace tests/unit/check_move tests/unit/check_resident
EXTRA_DIST += tests/unit/random.h
tests_unit_check_insn_SOURCES = tests/unit/check_insn.c tests/unit/insn_samples.S \
	tests/unit/elf_functions.c tests/unit/elf_functions.h
tests_unit_check_insn_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(ELF_CFLAGS)
tests_unit_check_insn_LDADD = src/libarch.a src/libbase.a $(ZYDIS_LIBS) $(ELF_LIBS) $(CHECK_LIBS)

tests_unit_check_displace_SOURCES = tests/unit/check_displace.c \
	tests/unit/stepped_child.c tests/unit/stepped_child.h \
	tests/unit/elf_functions.c tests/unit/elf_functions.h
tests_unit_check_displace_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(ELF_CFLAGS)
tests_unit_check_displace_LDADD = src/libarch.a src/libbase.a $(ZYDIS_LIBS) $(ELF_LIBS) $(CHECK_LIBS)

tests_unit_check_move_SOURCES = tests/unit/check_move.c tests/unit/move_samples.S \
	tests/unit/stepped_child.c tests/unit/stepped_child.h \
	tests/unit/elf_functions.c tests/unit/elf_functions.h
tests_unit_check_move_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(ELF_CFLAGS)
tests_unit_check_move_LDADD = src/libarch.a src/libbase.a $(ZYDIS_LIBS) $(ELF_LIBS) $(CHECK_LIBS)

tests_unit_check_resident_SOURCES = tests/unit/check_resident.c tests/unit/resident_samples.S
tests_unit_check_resident_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_resident_LDADD = src/libarch.a src/libbase.a $(ZYDIS_LIBS) $(CHECK_LIBS) -lpthread
endif
