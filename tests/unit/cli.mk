EXTRA_DIST += tests/unit/check_commands
# The client against a daemon that is part of the test; needs Python only.
TESTS += tests/unit/check_commands

if HAVE_CHECK
cli_checks = tests/unit/check_units tests/unit/check_source tests/unit/check_launch tests/unit/check_usage \
	tests/unit/check_top
check_PROGRAMS += $(cli_checks)
TESTS += $(cli_checks)
tests_unit_check_units_SOURCES = tests/unit/check_units.c
tests_unit_check_units_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_units_LDADD = src/libcli.a src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_source_SOURCES = tests/unit/check_source.c
tests_unit_check_source_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_source_LDADD = src/libcli.a src/libexport.a src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_launch_SOURCES = tests/unit/check_launch.c
tests_unit_check_launch_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_launch_LDADD = src/libcli.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_top_SOURCES = tests/unit/check_top.c tests/unit/random.h \
	tests/unit/snapshot_builder.c tests/unit/snapshot_builder.h
tests_unit_check_top_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_top_LDADD = src/libcli.a src/libexport.a src/libvarlink.a src/libmodel.a src/libbase.a \
	$(JANSSON_LIBS) $(CHECK_LIBS) -lm
tests_unit_check_usage_SOURCES = tests/unit/check_usage.c
tests_unit_check_usage_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_usage_LDADD = src/libbase.a $(CHECK_LIBS)
endif
