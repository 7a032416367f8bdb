if HAVE_CHECK
check_PROGRAMS += tests/unit/check_ring tests/unit/check_ring_ahead tests/unit/check_ring_code tests/unit/check_ring_settle tests/unit/check_ring_stack
TESTS += tests/unit/check_ring tests/unit/check_ring_ahead tests/unit/check_ring_code tests/unit/check_ring_settle tests/unit/check_ring_stack
tests_unit_check_ring_SOURCES = tests/unit/check_ring.c
tests_unit_check_ring_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ring_LDADD = src/libring.a src/libbase.a $(CHECK_LIBS) -lpthread

tests_unit_check_ring_ahead_SOURCES = tests/unit/check_ring_ahead.c \
	tests/unit/unwind_fixture.c tests/unit/unwind_fixture.h \
	tests/bench/process_map.c tests/bench/process_map.h
tests_unit_check_ring_ahead_CFLAGS = $(unwind_cflags) -O2 -fomit-frame-pointer -fno-optimize-sibling-calls
tests_unit_check_ring_ahead_LDADD = src/libprobe.a src/libring.a $(unwind_libs) -lpthread

tests_unit_check_ring_code_SOURCES = tests/unit/check_ring_code.c tests/unit/ring_samples.S \
	tests/unit/ring_fixture.c tests/unit/ring_fixture.h
tests_unit_check_ring_code_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ring_code_LDADD = src/libarch.a src/libring.a src/libbase.a $(ZYDIS_LIBS) $(CHECK_LIBS) -lpthread

tests_unit_check_ring_settle_SOURCES = tests/unit/check_ring_settle.c tests/unit/ring_samples.S \
	tests/unit/ring_fixture.c tests/unit/ring_fixture.h
tests_unit_check_ring_settle_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ring_settle_LDADD = src/libtarget.a src/libarch.a src/libring.a src/libmodel.a src/libbase.a \
	$(ELF_LIBS) $(ZYDIS_LIBS) $(CHECK_LIBS) -lpthread

tests_unit_check_ring_stack_SOURCES = tests/unit/check_ring_stack.c \
	tests/unit/ring_fixture.c tests/unit/ring_fixture.h \
	tests/unit/unwind_fixture.c tests/unit/unwind_fixture.h \
	tests/bench/process_map.c tests/bench/process_map.h
tests_unit_check_ring_stack_CFLAGS = $(unwind_cflags) -O2 -fomit-frame-pointer -fno-optimize-sibling-calls
tests_unit_check_ring_stack_LDADD = src/libprobe.a src/libring.a $(unwind_libs)
endif
