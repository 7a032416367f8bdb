if HAVE_CHECK
check_PROGRAMS += tests/unit/check_store tests/unit/check_history
TESTS += tests/unit/check_store tests/unit/check_history
tests_unit_check_store_SOURCES = tests/unit/check_store.c
tests_unit_check_store_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_store_LDADD = src/libstore.a src/libmodel.a src/libbase.a $(SQLITE_LIBS) $(CHECK_LIBS)
tests_unit_check_history_SOURCES = tests/unit/check_history.c
tests_unit_check_history_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_history_LDADD = src/libstore.a src/libmodel.a src/libbase.a $(SQLITE_LIBS) $(CHECK_LIBS)
endif
EXTRA_DIST += tests/unit/snapshot_version_1.sql tests/unit/snapshot_version_2.sql
