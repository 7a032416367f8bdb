if HAVE_CHECK
check_PROGRAMS += tests/unit/check_last tests/unit/check_wire
TESTS += tests/unit/check_last tests/unit/check_wire
tests_unit_check_wire_SOURCES = tests/unit/check_wire.c
tests_unit_check_wire_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_wire_LDADD = src/libwire.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_last_SOURCES = tests/unit/check_last.c src/tracer/session_status.c src/tracer/snapshot.c
tests_unit_check_last_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_last_LDADD = src/libwire.a $(tests_unit_check_probe_LDADD)
endif
