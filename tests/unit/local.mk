# One check program per folder of pure code; each folder's own list stands in a file of its own.
include tests/unit/base.mk
include tests/unit/model.mk
include tests/unit/arch.mk
include tests/unit/ring.mk
include tests/unit/unwind.mk
include tests/unit/symbol.mk
include tests/unit/fetch.mk
include tests/unit/probe.mk
include tests/unit/target.mk
include tests/unit/store.mk
include tests/unit/varlink.mk
include tests/unit/export.mk
include tests/unit/daemon.mk
include tests/unit/tracer.mk
include tests/unit/cli.mk

# The tests that need no process to watch, for builds where those cannot run: sanitized (where there are fuzz targets, too),
# packaged.  What they need is built, and of the programs that the live tests and the benchmarks are made of one that is read.
without_live = tr ' ' '\n' | grep '^tests/\(unit\|fuzz\)/' | tr '\n' ' '
check-unit:
	@$(MAKE) $(AM_MAKEFLAGS) check TESTS="`echo '$(TESTS)' | $(without_live)`" \
		check_PROGRAMS="`echo '$(check_PROGRAMS)' | $(without_live)` tests/victims/brief_static_pie" \
		check_LIBRARIES= check_DATA=
# All tests, and those of a sanitized build, for the one that distcheck makes.
list-tests:
	@echo '$(TESTS)' | tr ' ' '\n' | $(long_first)
list-sanitized-tests:
	@echo '$(TESTS) $(fuzz_tests)' | $(without_live) | tr ' ' '\n' | $(long_first)
# They wait most: begun first, they have others beside them, and none runs on alone when all others are done.  Who heals looks at
# all processes of a program, so that check_heal is best beside these.
long_tests = \
	tests/live/check_heal \
	tests/unit/check_daemon_tracers \
	tests/live/check_shares \
	tests/live/check_names \
	tests/live/check_debuginfo \
	tests/unit/check_symbol_server
long_first = awk -v long='$(long_tests)' 'NF { is_test[$$0]; tests[++count] = $$0 } \
	END { n = split(long, first); \
		for (i = 1; i <= n; i++) if (first[i] in is_test) { printf "%s ", first[i]; delete is_test[first[i]] } \
		for (i = 1; i <= count; i++) if (tests[i] in is_test) { printf "%s ", tests[i]; delete is_test[tests[i]] } print "" }'
list-sanitized-programs:
	@echo '$(check_PROGRAMS) $(fuzz_programs)' | $(without_live); echo tests/victims/brief_static_pie
# For who takes the build away, as distcheck does.
installcheck-local:
	@if test -n "$$KEPT_LOGS"; then tar -cf "$$KEPT_LOGS" `find tests -name '*.log' -o -name '*.trs'`; fi
.PHONY: check-unit list-tests list-sanitized-tests list-sanitized-programs

# For what is said a million times, and for random tests with a share of their rounds.
EXTRA_DIST += tests/unit/require.h tests/unit/share.h
