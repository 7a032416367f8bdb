if HAVE_CHECK
check_PROGRAMS += tests/unit/check_ring
TESTS += tests/unit/check_ring
tests_unit_check_ring_SOURCES = tests/unit/check_ring.c
tests_unit_check_ring_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ring_LDADD = src/libring.a src/libbase.a $(CHECK_LIBS) -lpthread
endif
