# Measurements: printed, never judged.  `make bench` runs them all and makes tables of what they say.
bench_common = \
	tests/bench/driver.c tests/bench/driver.h \
	tests/bench/process.c tests/bench/process.h
bench_libs = src/libwire.a src/libbase.a
# Optimised whatever the rest is, and without frame pointers: the ordinary program of a distribution.
bench_victim_cflags = $(victim_cflags) -O2 -fomit-frame-pointer

bench_programs = \
	tests/bench/bench_calls \
	tests/bench/bench_engines \
	tests/bench/bench_heap \
	tests/bench/bench_latency \
	tests/bench/bench_reader \
	tests/bench/bench_ring \
	tests/bench/bench_statistics \
	tests/bench/bench_stops \
	tests/bench/bench_store \
	tests/bench/bench_symbol \
	tests/bench/bench_unwind \
	tests/bench/bench_walk \
	tests/bench/record_stacks
bench_victims = \
	tests/bench/latency \
	tests/bench/pairs
check_PROGRAMS += tests/bench/bench_calls tests/bench/bench_engines tests/bench/bench_heap tests/bench/bench_latency tests/bench/bench_ring \
	tests/bench/bench_stops \
	$(bench_victims)

tests_bench_bench_calls_SOURCES = tests/bench/bench_calls.c tests/bench/allocation_counter.h $(bench_common)
tests_bench_bench_calls_LDADD = $(bench_libs)
tests_bench_bench_engines_SOURCES = tests/bench/bench_engines.c $(bench_common)
tests_bench_bench_engines_LDADD = $(bench_libs)
tests_bench_bench_heap_SOURCES = tests/bench/bench_heap.c
tests_bench_bench_heap_LDADD = src/libmodel.a src/libbase.a -lm
tests_bench_bench_latency_SOURCES = tests/bench/bench_latency.c tests/bench/empty_stop.c tests/bench/empty_stop.h $(bench_common)
tests_bench_bench_latency_LDADD = $(bench_libs)
tests_bench_bench_stops_SOURCES = tests/bench/bench_stops.c tests/bench/floor.c tests/bench/floor.h \
	src/tracer/placement.c src/tracer/placement.h $(bench_common)
tests_bench_bench_stops_LDADD = src/libtarget.a $(bench_libs)

tests_bench_latency_SOURCES = tests/bench/latency.c
tests_bench_latency_CFLAGS = $(bench_victim_cflags)
tests_bench_latency_LDFLAGS = $(victim_ldflags)
tests_bench_latency_LDADD = $(victim_libs)
tests_bench_pairs_SOURCES = tests/bench/pairs.c
tests_bench_pairs_CFLAGS = $(bench_victim_cflags)
tests_bench_pairs_LDFLAGS = $(victim_ldflags)
tests_bench_pairs_LDADD = $(victim_libs)

bench_data = tests/bench/allocation_counter.so
check_DATA += $(bench_data)
tests/bench/allocation_counter.so: tests/bench/allocation_counter.c tests/bench/allocation_counter.h
	$(AM_V_CCLD)$(MKDIR_P) tests/bench && $(victim_link_shared) $(srcdir)/tests/bench/allocation_counter.c

EXTRA_DIST += tests/bench/large_object doc/BENCH.md tests/bench/allocation_counter.c tests/bench/bench_statistics.py \
	tests/bench/bench_sampling.py \
	tests/bench/report.py tests/bench/run.py
CLEANFILES += $(bench_data) bench-results.json tests/bench/*.stacks

include tests/bench/store.mk
include tests/bench/symbol.mk
include tests/bench/unwind.mk

# All of it takes some eight minutes; the numbers stay in bench-results.json.
bench: all $(bench_programs) $(bench_victims) $(bench_data) tests/victims/plugin.so
	srcdir='$(srcdir)' $(srcdir)/tests/bench/run.py bench-results.json; r=$$?; \
	$(srcdir)/tests/bench/report.py bench-results.json && exit $$r
# The same as a page of the documentation, from the last run.
bench-page: bench-results.json
	$(srcdir)/tests/bench/report.py bench-results.json > $(srcdir)/doc/BENCH.md
bench-results.json:
	$(MAKE) bench
# Names on 500 MB of debug information, which take a minute to make: within the bounds that are stated, or it fails.
bench-names: all tests/bench/bench_symbol tests/unit/check_symbol_server
	$(srcdir)/tests/bench/large_object bench-names.so 96 8000
	CK_RUN_CASE=large LARGE_FILE="$$PWD/bench-names.so" tests/unit/check_symbol_server && \
		tests/bench/bench_symbol bench-names.so 5000; r=$$?; rm -f bench-names.so; exit $$r
.PHONY: bench bench-page bench-names
