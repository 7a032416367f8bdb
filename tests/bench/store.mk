check_PROGRAMS += tests/bench/bench_store
tests_bench_bench_store_SOURCES = tests/bench/bench_store.c
tests_bench_bench_store_LDADD = src/libstore.a src/libmodel.a src/libbase.a $(SQLITE_LIBS)
