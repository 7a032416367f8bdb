check_PROGRAMS += tests/bench/bench_store tests/bench/bench_statistics
tests_bench_bench_store_SOURCES = tests/bench/bench_store.c tests/bench/synthetic.c tests/bench/synthetic.h
tests_bench_bench_store_LDADD = src/libstore.a src/libmodel.a src/libbase.a $(SQLITE_LIBS) -lm
tests_bench_bench_statistics_SOURCES = tests/bench/bench_statistics.c tests/bench/synthetic.c tests/bench/synthetic.h
tests_bench_bench_statistics_LDADD = $(tests_bench_bench_store_LDADD)
