check_PROGRAMS += tests/bench/bench_symbol
tests_bench_bench_symbol_SOURCES = tests/bench/bench_symbol.c
tests_bench_bench_symbol_CFLAGS = $(AM_CFLAGS) $(DW_CFLAGS) $(ELF_CFLAGS)
tests_bench_bench_symbol_LDADD = src/libsymbol.a src/libsymbolwire.a src/libbase.a $(DW_LIBS) $(ELF_LIBS) \
	$(IBERTY_LIBS)
