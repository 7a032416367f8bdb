# Measurements: printed, never judged.
check_PROGRAMS += tests/bench/bench_heap
tests_bench_bench_heap_SOURCES = tests/bench/bench_heap.c
tests_bench_bench_heap_LDADD = src/libmodel.a src/libbase.a
include tests/bench/symbol.mk
include tests/bench/store.mk
include tests/bench/unwind.mk
