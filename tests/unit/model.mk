if HAVE_CHECK
model_checks = tests/unit/check_module \
	tests/unit/check_alarm \
	tests/unit/check_allocators \
	tests/unit/check_stack \
	tests/unit/check_heap \
	tests/unit/check_heap_memory \
	tests/unit/check_heap_peak \
	tests/unit/check_mappings \
	tests/unit/check_sampling \
	tests/unit/check_snapshot \
	tests/unit/check_traceback \
	tests/unit/check_filter \
	tests/unit/check_statistics \
	tests/unit/check_upgrade \
	tests/unit/check_statistics_oracle \
	tests/unit/check_beyond_oracle \
	tests/unit/check_beyond_laws
check_PROGRAMS += $(model_checks)
TESTS += $(model_checks)
tests_unit_check_alarm_SOURCES = tests/unit/check_alarm.c
tests_unit_check_alarm_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_alarm_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_allocators_SOURCES = tests/unit/check_allocators.c
tests_unit_check_allocators_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_allocators_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_module_SOURCES = tests/unit/check_module.c
tests_unit_check_module_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_module_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_stack_SOURCES = tests/unit/check_stack.c
tests_unit_check_stack_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_stack_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_heap_SOURCES = tests/unit/check_heap.c
tests_unit_check_heap_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_heap_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_heap_memory_SOURCES = tests/unit/check_heap_memory.c
tests_unit_check_heap_memory_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_heap_memory_LDFLAGS = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=free,--wrap=strdup,--wrap=strndup
tests_unit_check_heap_memory_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_heap_peak_SOURCES = tests/unit/check_heap_peak.c
tests_unit_check_heap_peak_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_heap_peak_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_mappings_SOURCES = tests/unit/check_mappings.c
tests_unit_check_mappings_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_mappings_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_sampling_SOURCES = tests/unit/check_sampling.c
tests_unit_check_sampling_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_sampling_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_snapshot_SOURCES = tests/unit/check_snapshot.c
tests_unit_check_snapshot_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_snapshot_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_traceback_SOURCES = tests/unit/check_traceback.c \
	tests/unit/snapshot_builder.c tests/unit/snapshot_builder.h
tests_unit_check_traceback_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_traceback_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_filter_SOURCES = tests/unit/check_filter.c
tests_unit_check_filter_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_filter_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_statistics_SOURCES = tests/unit/check_statistics.c \
	tests/unit/snapshot_builder.c tests/unit/snapshot_builder.h
tests_unit_check_statistics_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_statistics_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_upgrade_SOURCES = tests/unit/check_upgrade.c \
	tests/unit/snapshot_builder.c tests/unit/snapshot_builder.h
tests_unit_check_upgrade_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_upgrade_LDADD = src/libmodel.a src/libbase.a $(CHECK_LIBS)
tests_unit_check_statistics_oracle_SOURCES = tests/unit/check_statistics_oracle.c \
	tests/unit/oracle.c tests/unit/oracle.h \
	tests/unit/snapshot_builder.c tests/unit/snapshot_builder.h
tests_unit_check_statistics_oracle_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_statistics_oracle_LDADD = src/libmodel.a src/libbase.a $(JANSSON_LIBS) $(CHECK_LIBS)
random_series_sources = tests/unit/random_series.c tests/unit/random_series.h tests/unit/random.h \
	tests/unit/oracle.c tests/unit/oracle.h tests/unit/snapshot_builder.c tests/unit/snapshot_builder.h
tests_unit_check_beyond_oracle_SOURCES = tests/unit/check_beyond_oracle.c $(random_series_sources)
tests_unit_check_beyond_oracle_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_beyond_oracle_LDADD = src/libvarlink.a src/libmodel.a src/libbase.a $(JANSSON_LIBS) $(CHECK_LIBS)
tests_unit_check_beyond_laws_SOURCES = tests/unit/check_beyond_laws.c $(random_series_sources)
tests_unit_check_beyond_laws_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_beyond_laws_LDADD = src/libvarlink.a src/libmodel.a src/libbase.a $(JANSSON_LIBS) $(CHECK_LIBS) -lm
endif
EXTRA_DIST += tests/unit/statistics_oracle.py tests/oracle/beyond.py
