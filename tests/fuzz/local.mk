# Fuzz targets: always with sanitizers where the compiler has them, and run for a moment in the suite.
# tests/fuzz/fuzz_store RUNS SEED FILE... runs longer; with clang,
#   make CC=clang FUZZ_FLAGS='-DFUZZ_WITH_LIBFUZZER -fsanitize=fuzzer' tests/fuzz/fuzz_store
# makes it libFuzzer's.
check_PROGRAMS += tests/fuzz/fuzz_store
tests_fuzz_fuzz_store_SOURCES = tests/fuzz/fuzz_store.c tests/fuzz/fuzz_driver.c tests/fuzz/fuzz_driver.h \
	$(src_libstore_a_SOURCES) $(src_libexport_a_SOURCES) $(src_libmodel_a_SOURCES) $(src_libbase_a_SOURCES)
tests_fuzz_fuzz_store_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/fuzz -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
tests_fuzz_fuzz_store_CFLAGS = $(AM_CFLAGS) $(FUZZ_SANITIZE) $(FUZZ_FLAGS)
tests_fuzz_fuzz_store_LDFLAGS = $(FUZZ_SANITIZE) $(FUZZ_FLAGS)
tests_fuzz_fuzz_store_LDADD = $(SQLITE_LIBS) -lm
TESTS += tests/fuzz/check_fuzz_store
# Those of version 2 are make_store_seeds'.
EXTRA_DIST += tests/fuzz/check_fuzz_store tests/fuzz/make_store_seeds \
	tests/fuzz/seeds/store/blocks.aw \
	tests/fuzz/seeds/store/plain.aw \
	tests/fuzz/seeds/store/v2-all-temporary.aw \
	tests/fuzz/seeds/store/v2-blocks.aw \
	tests/fuzz/seeds/store/v2-foreign-blocks.aw \
	tests/fuzz/seeds/store/v2-half.aw \
	tests/fuzz/seeds/store/v2-header.aw \
	tests/fuzz/seeds/store/v2-huge-sizes.aw \
	tests/fuzz/seeds/store/v2-latest-age.aw \
	tests/fuzz/seeds/store/v2-latest-clock.aw \
	tests/fuzz/seeds/store/v2-made-overflow.aw \
	tests/fuzz/seeds/store/v2-many.aw \
	tests/fuzz/seeds/store/v2-negative-age.aw \
	tests/fuzz/seeds/store/v2-negative-clock.aw \
	tests/fuzz/seeds/store/v2-never-made.aw \
	tests/fuzz/seeds/store/v2-no-clock.aw \
	tests/fuzz/seeds/store/v2-no-thread.aw \
	tests/fuzz/seeds/store/v2-peak-overflow.aw \
	tests/fuzz/seeds/store/v2-peak-without-blocks.aw \
	tests/fuzz/seeds/store/v2-plain.aw \
	tests/fuzz/seeds/store/v2-said-version-1.aw \
	tests/fuzz/seeds/store/v2-said-version-3.aw \
	tests/fuzz/seeds/store/v2-shuffled.aw \
	tests/fuzz/seeds/store/v2-text-peak.aw \
	tests/fuzz/seeds/store/v2-truncated.aw \
	tests/fuzz/seeds/store/v2-wide-thread.aw
