if HAVE_CHECK
cli_checks = tests/unit/check_units tests/unit/check_source tests/unit/check_launch
check_PROGRAMS += $(cli_checks)
TESTS += $(cli_checks)
tests_unit_check_units_SOURCES = tests/unit/check_units.c
tests_unit_check_units_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_units_LDADD = src/libcli.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_source_SOURCES = tests/unit/check_source.c
tests_unit_check_source_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_source_LDADD = src/libcli.a src/libexport.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_launch_SOURCES = tests/unit/check_launch.c
tests_unit_check_launch_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_launch_LDADD = src/libcli.a src/libbase.a $(CHECK_LIBS)
endif
