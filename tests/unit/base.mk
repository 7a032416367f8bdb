if HAVE_CHECK
check_PROGRAMS += tests/unit/check_base
TESTS += tests/unit/check_base
tests_unit_check_base_SOURCES = tests/unit/check_base.c
tests_unit_check_base_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_base_LDADD = src/libbase.a $(CHECK_LIBS)
check_PROGRAMS += tests/unit/check_cgroup
TESTS += tests/unit/check_cgroup
tests_unit_check_cgroup_SOURCES = tests/unit/check_cgroup.c
tests_unit_check_cgroup_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_cgroup_LDADD = src/libbase.a $(CHECK_LIBS)
endif
