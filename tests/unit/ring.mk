if HAVE_CHECK
check_PROGRAMS += tests/unit/check_ring tests/unit/check_ring_code
TESTS += tests/unit/check_ring tests/unit/check_ring_code
tests_unit_check_ring_SOURCES = tests/unit/check_ring.c
tests_unit_check_ring_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ring_LDADD = src/libring.a src/libbase.a $(CHECK_LIBS) -lpthread

tests_unit_check_ring_code_SOURCES = tests/unit/check_ring_code.c tests/unit/ring_samples.S \
	tests/unit/ring_fixture.c tests/unit/ring_fixture.h
tests_unit_check_ring_code_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ring_code_LDADD = src/libarch.a src/libring.a src/libbase.a $(ZYDIS_LIBS) $(CHECK_LIBS) -lpthread
endif
