if HAVE_CHECK
model_checks = tests/unit/check_module tests/unit/check_stack tests/unit/check_heap \
	tests/unit/check_snapshot
check_PROGRAMS += $(model_checks)
TESTS += $(model_checks)
tests_unit_check_module_SOURCES = tests/unit/check_module.c
tests_unit_check_module_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_module_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_stack_SOURCES = tests/unit/check_stack.c
tests_unit_check_stack_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_stack_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_heap_SOURCES = tests/unit/check_heap.c
tests_unit_check_heap_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_heap_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_snapshot_SOURCES = tests/unit/check_snapshot.c
tests_unit_check_snapshot_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_snapshot_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
endif
