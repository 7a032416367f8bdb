# Recording needs redis-server, python3 and gcc; see the head of each file.
bench_unwind_cflags = $(AM_CFLAGS) -D_GNU_SOURCE $(DW_CFLAGS) $(ELF_CFLAGS) $(UNWIND_CFLAGS) $(JANSSON_CFLAGS)
bench_unwind_libs = src/libaw_unwind.a src/libarch.a src/libmodel.a src/libbase.a $(DW_LIBS) $(ELF_LIBS) \
	$(UNWIND_LIBS) $(ZYDIS_LIBS) $(JANSSON_LIBS) -lm
check_PROGRAMS += tests/bench/bench_reader tests/bench/bench_unwind tests/bench/bench_walk tests/bench/record_stacks
tests_bench_bench_unwind_SOURCES = tests/bench/bench_unwind.c \
	tests/bench/process_map.c tests/bench/process_map.h \
	tests/bench/recording.c tests/bench/recording.h \
	tests/bench/walker.c tests/bench/walker.h
tests_bench_bench_unwind_CFLAGS = $(bench_unwind_cflags)
tests_bench_bench_unwind_LDADD = $(bench_unwind_libs)
tests_bench_bench_walk_SOURCES = tests/bench/bench_walk.c tests/bench/recording.c tests/bench/recording.h \
	tests/bench/process_map.c tests/bench/process_map.h
tests_bench_bench_walk_CFLAGS = $(bench_unwind_cflags) -O2
tests_bench_bench_walk_LDADD = $(bench_unwind_libs)
tests_bench_bench_reader_SOURCES = tests/bench/bench_reader.c tests/bench/recording.c tests/bench/recording.h \
	tests/bench/process_map.c tests/bench/process_map.h
tests_bench_bench_reader_CFLAGS = $(bench_unwind_cflags) -O2
tests_bench_bench_reader_LDADD = src/libprobe.a src/libring.a $(bench_unwind_libs) -lpthread
tests_bench_record_stacks_SOURCES = tests/bench/record_stacks.c \
	tests/bench/process_map.c tests/bench/process_map.h \
	tests/bench/recording.c tests/bench/recording.h \
	tests/bench/sampler.c tests/bench/sampler.h \
	tests/bench/workload.c tests/bench/workload.h
tests_bench_record_stacks_CFLAGS = $(bench_unwind_cflags)
tests_bench_record_stacks_LDADD = $(bench_unwind_libs)

tests_bench_bench_ring_SOURCES = tests/bench/bench_ring.c tests/unit/ring_fixture.c tests/unit/ring_fixture.h \
	tests/bench/process_map.c tests/bench/process_map.h
tests_bench_bench_ring_CFLAGS = $(bench_unwind_cflags) -O2 -fno-optimize-sibling-calls
tests_bench_bench_ring_LDADD = src/libprobe.a src/libring.a $(bench_unwind_libs) -lpthread
