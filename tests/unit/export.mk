EXTRA_DIST += tests/oracle/tracemalloc_text.py
if HAVE_CHECK
check_PROGRAMS += tests/unit/check_text
TESTS += tests/unit/check_text
tests_unit_check_text_SOURCES = tests/unit/check_text.c
tests_unit_check_text_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_text_LDADD = src/libcli.a src/libexport.a src/libmodel.a src/libbase.a \
	$(CHECK_LIBS) $(JANSSON_LIBS) -lm
endif
check_PROGRAMS += tests/unit/random_snapshots
tests_unit_random_snapshots_SOURCES = tests/unit/random_snapshots.c \
	tests/unit/snapshot_builder.c tests/unit/snapshot_builder.h
tests_unit_random_snapshots_LDADD = src/libstore.a src/libmodel.a src/libbase.a $(SQLITE_LIBS) -lm
# The program itself, against Python's tracemalloc.
TESTS += tests/unit/check_export_oracle tests/unit/check_beyond tests/unit/check_files tests/unit/check_asked
EXTRA_DIST += tests/unit/check_export_oracle tests/unit/check_beyond tests/unit/check_files tests/unit/check_asked \
	tests/oracle/tracemalloc_snapshots.py
if HAVE_CHECK
check_PROGRAMS += tests/unit/check_openmetrics
TESTS += tests/unit/check_openmetrics
tests_unit_check_openmetrics_SOURCES = tests/unit/check_openmetrics.c
tests_unit_check_openmetrics_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_openmetrics_LDADD = src/libexport.a src/libmodel.a src/libbase.a $(CHECK_LIBS)
endif
