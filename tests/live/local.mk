# Tests against running processes.  Each program is a table of cases, see live.h; they run from the
# build tree.  The sanitizers' runtime cannot be in counter.so, which is loaded into victims.
live_cflags = $(AM_CFLAGS) -D_GNU_SOURCE $(JANSSON_CFLAGS)
live_libs = tests/live/liblive.a src/libbase.a $(JANSSON_LIBS) -lm

check_LIBRARIES += tests/live/liblive.a
tests_live_liblive_a_SOURCES = \
	tests/live/cgroup.c tests/live/cgroup.h \
	tests/live/estimates.c tests/live/estimates.h \
	tests/live/footprint.c tests/live/footprint.h \
	tests/live/handlers.c tests/live/handlers.h \
	tests/live/live.h tests/live/runner.c \
	tests/live/programs.c tests/live/programs.h \
	tests/live/rounds.c tests/live/rounds.h \
	tests/live/state.c tests/live/state.h \
	tests/live/subject.c tests/live/subject.h \
	tests/live/terminal.c tests/live/terminal.h \
	tests/live/tool.c tests/live/tool.h
tests_live_liblive_a_CFLAGS = $(live_cflags) -DSOURCE_FOLDER='"$(srcdir)"'

check_DATA += tests/live/counter.so
EXTRA_DIST += tests/live/counter.c tests/live/counter.h
CLEANFILES += tests/live/counter.so tests/live/healers.lock tests/live/uprobes.lock
tests/live/counter.so: tests/live/counter.c tests/live/counter.h
	$(AM_V_CCLD)$(MKDIR_P) tests/live && $(victim_link_shared) $(srcdir)/tests/live/counter.c

torture_tests = \
	tests/live/check_harness \
	tests/live/check_attach \
	tests/live/check_exact \
	tests/live/check_release \
	tests/live/check_settle \
	tests/live/check_ptrace \
	tests/live/check_ring \
	tests/live/check_readers \
	tests/live/check_namespaces \
	tests/live/check_sampling \
	tests/live/check_detach \
	tests/live/check_children \
	tests/live/check_execs \
	tests/live/check_forks \
	tests/live/check_clones \
	tests/live/check_early \
	tests/live/check_upgrade \
	tests/live/check_guests \
	tests/live/check_leaks \
	tests/live/check_blocks \
	tests/live/check_limits \
	tests/live/check_memory \
	tests/live/check_oracle \
	tests/live/check_signals \
	tests/live/check_survival \
	tests/live/check_oom \
	tests/live/check_moments \
	tests/live/check_heal \
	tests/live/check_masks \
	tests/live/check_stuck \
	tests/live/check_held \
	tests/live/check_hostile \
	tests/live/check_lost \
	tests/live/check_disk \
	tests/live/check_names \
	tests/live/check_jit \
	tests/live/check_follow \
	tests/live/check_rights \
	tests/live/check_owners \
	tests/live/check_shares \
	tests/live/check_allocators \
	tests/live/check_calls \
	tests/live/check_holes \
	tests/live/check_remapped \
	tests/live/check_errors \
	tests/live/check_foreign \
	tests/live/check_tracers \
	tests/live/check_breakpoints \
	tests/live/check_pads \
	tests/live/check_uprobes \
	tests/live/check_perf \
	tests/live/check_traps \
	tests/live/check_permission \
	tests/live/check_filters \
	tests/live/check_programs \
	tests/live/check_engines \
	tests/live/check_run \
	tests/live/check_jobs \
	tests/live/check_snapshots \
	tests/live/check_python \
	tests/live/check_terminal \
	tests/live/check_top \
	tests/live/check_users_line \
	tests/live/check_described \
	tests/live/check_mappings \
	tests/live/check_mismatches
live_tests = $(torture_tests) tests/live/check_chaos tests/live/check_load tests/live/check_matrix
if HAVE_DEBUGINFOD
live_tests += tests/live/check_debuginfo
endif
check_PROGRAMS += $(live_tests)
TESTS += $(live_tests)

tests_live_check_harness_SOURCES = tests/live/check_harness.c
tests_live_check_harness_CFLAGS = $(live_cflags)
tests_live_check_harness_LDADD = $(live_libs)

tests_live_check_mappings_SOURCES = tests/live/check_mappings.c
tests_live_check_mappings_CFLAGS = $(live_cflags)
tests_live_check_mappings_LDADD = $(live_libs)

tests_live_check_upgrade_SOURCES = tests/live/check_upgrade.c
tests_live_check_upgrade_CFLAGS = $(live_cflags)
tests_live_check_upgrade_LDADD = $(live_libs)
tests_live_check_early_SOURCES = tests/live/check_early.c
tests_live_check_early_CFLAGS = $(live_cflags)
tests_live_check_early_LDADD = $(live_libs)

tests_live_check_attach_SOURCES = tests/live/check_attach.c
tests_live_check_attach_CFLAGS = $(live_cflags)
tests_live_check_attach_LDADD = $(live_libs)

tests_live_check_exact_SOURCES = tests/live/check_exact.c
tests_live_check_exact_CFLAGS = $(live_cflags)
tests_live_check_exact_LDADD = $(live_libs)
tests_live_check_release_SOURCES = tests/live/check_release.c
tests_live_check_release_CFLAGS = $(live_cflags)
tests_live_check_release_LDADD = $(live_libs)

tests_live_check_namespaces_SOURCES = tests/live/check_namespaces.c
tests_live_check_namespaces_CFLAGS = $(live_cflags)
tests_live_check_namespaces_LDADD = $(live_libs)
tests_live_check_settle_SOURCES = tests/live/check_settle.c
tests_live_check_settle_CFLAGS = $(live_cflags)
tests_live_check_settle_LDADD = $(live_libs)
tests_live_check_ptrace_SOURCES = tests/live/check_ptrace.c
tests_live_check_ptrace_CFLAGS = $(live_cflags)
tests_live_check_ptrace_LDADD = $(live_libs)
tests_live_check_readers_SOURCES = tests/live/check_readers.c
tests_live_check_readers_CFLAGS = $(live_cflags)
tests_live_check_readers_LDADD = $(live_libs)
tests_live_check_ring_SOURCES = tests/live/check_ring.c
tests_live_check_ring_CFLAGS = $(live_cflags) -I$(srcdir)/tests/faults
tests_live_check_ring_LDADD = $(live_libs)

tests_live_check_jobs_SOURCES = tests/live/check_jobs.c
tests_live_check_jobs_CFLAGS = $(live_cflags)
tests_live_check_jobs_LDADD = $(live_libs)

tests_live_check_detach_SOURCES = tests/live/check_detach.c
tests_live_check_detach_CFLAGS = $(live_cflags)
tests_live_check_detach_LDADD = $(live_libs)

tests_live_check_children_SOURCES = tests/live/check_children.c
tests_live_check_children_CFLAGS = $(live_cflags)
tests_live_check_children_LDADD = $(live_libs)

tests_live_check_execs_SOURCES = tests/live/check_execs.c
tests_live_check_execs_CFLAGS = $(live_cflags)
tests_live_check_execs_LDADD = $(live_libs)

tests_live_check_forks_SOURCES = tests/live/check_forks.c
tests_live_check_forks_CFLAGS = $(live_cflags)
tests_live_check_forks_LDADD = $(live_libs)

tests_live_check_clones_SOURCES = tests/live/check_clones.c
tests_live_check_clones_CFLAGS = $(live_cflags)
tests_live_check_clones_LDADD = $(live_libs)

tests_live_check_guests_SOURCES = tests/live/check_guests.c
tests_live_check_guests_CFLAGS = $(live_cflags)
tests_live_check_guests_LDADD = $(live_libs)

tests_live_check_sampling_SOURCES = tests/live/check_sampling.c
tests_live_check_sampling_CFLAGS = $(live_cflags)
tests_live_check_sampling_LDADD = $(live_libs)
tests_live_check_signals_SOURCES = tests/live/check_signals.c
tests_live_check_signals_CFLAGS = $(live_cflags)
tests_live_check_signals_LDADD = $(live_libs)

tests_live_check_allocators_SOURCES = tests/live/check_allocators.c
tests_live_check_allocators_CFLAGS = $(live_cflags)
tests_live_check_allocators_LDADD = $(live_libs)

tests_live_check_owners_SOURCES = tests/live/check_owners.c tests/live/client.c tests/live/client.h
tests_live_check_owners_CFLAGS = $(live_cflags)
tests_live_check_owners_LDADD = src/libvarlink.a $(live_libs)
tests_live_check_shares_SOURCES = tests/live/check_shares.c tests/live/client.c tests/live/client.h
tests_live_check_shares_CFLAGS = $(live_cflags)
tests_live_check_shares_LDADD = src/libvarlink.a $(live_libs)

tests_live_check_holes_SOURCES = tests/live/check_holes.c
tests_live_check_holes_CFLAGS = $(live_cflags)
tests_live_check_holes_LDADD = $(live_libs)
tests_live_check_remapped_SOURCES = tests/live/check_remapped.c
tests_live_check_remapped_CFLAGS = $(live_cflags)
tests_live_check_remapped_LDADD = $(live_libs)
tests_live_check_calls_SOURCES = tests/live/check_calls.c
tests_live_check_calls_CFLAGS = $(live_cflags)
tests_live_check_calls_LDADD = $(live_libs)

tests_live_check_errors_SOURCES = tests/live/check_errors.c
tests_live_check_errors_CFLAGS = $(live_cflags)
tests_live_check_errors_LDADD = $(live_libs)

tests_live_check_users_line_SOURCES = tests/live/check_users_line.c
tests_live_check_users_line_CFLAGS = $(live_cflags)
tests_live_check_users_line_LDADD = $(live_libs)

tests_live_check_described_SOURCES = tests/live/check_described.c
tests_live_check_described_CFLAGS = $(live_cflags)
tests_live_check_described_LDADD = $(live_libs)

tests_live_check_mismatches_SOURCES = tests/live/check_mismatches.c
tests_live_check_mismatches_CFLAGS = $(live_cflags)
tests_live_check_mismatches_LDADD = $(live_libs)

tests_live_check_engines_SOURCES = tests/live/check_engines.c
tests_live_check_engines_CFLAGS = $(live_cflags)
tests_live_check_engines_LDADD = $(live_libs)

tests_live_check_programs_SOURCES = tests/live/check_programs.c
tests_live_check_programs_CFLAGS = $(live_cflags)
tests_live_check_programs_LDADD = $(live_libs)

tests_live_check_masks_SOURCES = tests/live/check_masks.c
tests_live_check_masks_CFLAGS = $(live_cflags)
tests_live_check_masks_LDADD = $(live_libs)
tests_live_check_lost_SOURCES = tests/live/check_lost.c
tests_live_check_lost_CFLAGS = $(live_cflags)
tests_live_check_lost_LDADD = $(live_libs)
tests_live_check_held_SOURCES = tests/live/check_held.c
tests_live_check_held_CFLAGS = $(live_cflags)
tests_live_check_held_LDADD = $(live_libs)

tests_live_check_hostile_SOURCES = tests/live/check_hostile.c tests/live/file_server.c tests/live/file_server.h \
	tests/live/forged.c tests/live/forged.h
tests_live_check_hostile_CFLAGS = $(live_cflags)
tests_live_check_hostile_LDADD = $(live_libs)

tests_live_check_stuck_SOURCES = tests/live/check_stuck.c
tests_live_check_stuck_CFLAGS = $(live_cflags)
tests_live_check_stuck_LDADD = $(live_libs)

tests_live_check_chaos_SOURCES = tests/live/check_chaos.c tests/live/fleet.c tests/live/fleet.h
tests_live_check_chaos_CFLAGS = $(live_cflags)
tests_live_check_chaos_LDADD = $(live_libs)

tests_live_check_follow_SOURCES = tests/live/check_follow.c
tests_live_check_follow_CFLAGS = $(live_cflags)
tests_live_check_follow_LDADD = $(live_libs)

tests_live_check_rights_SOURCES = tests/live/check_rights.c
tests_live_check_rights_CFLAGS = $(live_cflags)
tests_live_check_rights_LDADD = $(live_libs)

tests_live_check_moments_SOURCES = tests/live/check_moments.c
tests_live_check_moments_CFLAGS = $(live_cflags)
tests_live_check_moments_LDADD = $(live_libs)

tests_live_check_foreign_SOURCES = tests/live/check_foreign.c
tests_live_check_foreign_CFLAGS = $(live_cflags) -DSOURCE_FOLDER='"$(srcdir)"'
tests_live_check_foreign_LDADD = $(live_libs)

tests_live_check_breakpoints_SOURCES = tests/live/check_breakpoints.c \
	tests/live/jump_places.c tests/live/jump_places.h
tests_live_check_breakpoints_CFLAGS = $(live_cflags)
tests_live_check_breakpoints_LDADD = $(live_libs) src/libarch.a src/libbase.a $(ZYDIS_LIBS)

tests_live_check_pads_SOURCES = tests/live/check_pads.c
tests_live_check_pads_CFLAGS = $(live_cflags)
tests_live_check_pads_LDADD = $(live_libs)

tests_live_check_tracers_SOURCES = tests/live/check_tracers.c
tests_live_check_tracers_CFLAGS = $(live_cflags)
tests_live_check_tracers_LDADD = $(live_libs)

tests_live_check_uprobes_SOURCES = tests/live/check_uprobes.c
tests_live_check_uprobes_CFLAGS = $(live_cflags)
tests_live_check_uprobes_LDADD = $(live_libs)

tests_live_check_perf_SOURCES = tests/live/check_perf.c
tests_live_check_perf_CFLAGS = $(live_cflags)
tests_live_check_perf_LDADD = $(live_libs)

tests_live_check_traps_SOURCES = tests/live/check_traps.c
tests_live_check_traps_CFLAGS = $(live_cflags)
tests_live_check_traps_LDADD = $(live_libs)

tests_live_check_heal_SOURCES = tests/live/check_heal.c
tests_live_check_heal_CFLAGS = $(live_cflags)
tests_live_check_heal_LDADD = $(live_libs)

tests_live_check_permission_SOURCES = tests/live/check_permission.c
tests_live_check_permission_CFLAGS = $(live_cflags)
tests_live_check_permission_LDADD = $(live_libs)

tests_live_check_filters_SOURCES = tests/live/check_filters.c
tests_live_check_filters_CFLAGS = $(live_cflags)
tests_live_check_filters_LDADD = $(live_libs)

tests_live_check_run_SOURCES = tests/live/check_run.c
tests_live_check_run_CFLAGS = $(live_cflags)
tests_live_check_run_LDADD = $(live_libs)

tests_live_check_terminal_SOURCES = tests/live/check_terminal.c
tests_live_check_terminal_CFLAGS = $(live_cflags)
tests_live_check_terminal_LDADD = $(live_libs)

tests_live_check_leaks_SOURCES = tests/live/check_leaks.c
tests_live_check_leaks_CFLAGS = $(live_cflags)
tests_live_check_leaks_LDADD = src/libvarlink.a src/libmodel.a $(live_libs)
EXTRA_DIST += tests/oracle/blocks_of_ages.py tests/oracle/trends.py

tests_live_check_blocks_SOURCES = tests/live/check_blocks.c tests/live/client.c tests/live/client.h
tests_live_check_blocks_CFLAGS = $(live_cflags)
tests_live_check_blocks_LDADD = src/libvarlink.a src/libmodel.a $(live_libs)

tests_live_check_memory_SOURCES = tests/live/check_memory.c
tests_live_check_memory_CFLAGS = $(live_cflags)
tests_live_check_memory_LDADD = $(live_libs)

tests_live_check_limits_SOURCES = tests/live/check_limits.c tests/live/client.c tests/live/client.h
tests_live_check_limits_CFLAGS = $(live_cflags)
tests_live_check_limits_LDADD = src/libvarlink.a src/libmodel.a $(live_libs)

tests_live_check_disk_SOURCES = tests/live/check_disk.c
tests_live_check_disk_CFLAGS = $(live_cflags)
tests_live_check_disk_LDADD = $(live_libs)

tests_live_check_jit_SOURCES = tests/live/check_jit.c
tests_live_check_jit_CFLAGS = $(live_cflags) -DSOURCE_FOLDER='"$(abs_srcdir)"'
tests_live_check_jit_LDADD = $(live_libs)
EXTRA_DIST += tests/live/generated_names.py

tests_live_check_names_SOURCES = tests/live/check_names.c
tests_live_check_names_CFLAGS = $(live_cflags)
tests_live_check_names_LDADD = $(live_libs)

if HAVE_DEBUGINFOD
tests_live_check_debuginfo_SOURCES = tests/live/check_debuginfo.c tests/unit/debug_server.c tests/unit/debug_server.h
tests_live_check_debuginfo_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests/unit
tests_live_check_debuginfo_CFLAGS = $(live_cflags)
tests_live_check_debuginfo_LDADD = $(live_libs)
endif

tests_live_check_load_SOURCES = tests/live/check_load.c tests/live/load.c tests/live/load.h \
	tests/live/client.c tests/live/client.h
tests_live_check_load_CFLAGS = $(live_cflags)
tests_live_check_load_LDADD = src/libvarlink.a src/libmodel.a $(live_libs)

tests_live_check_top_SOURCES = tests/live/check_top.c
tests_live_check_top_CFLAGS = $(live_cflags)
tests_live_check_top_LDADD = $(live_libs)

tests_live_check_oom_SOURCES = tests/live/check_oom.c
tests_live_check_oom_CFLAGS = $(live_cflags)
tests_live_check_oom_LDADD = $(live_libs)

tests_live_check_survival_SOURCES = tests/live/check_survival.c
tests_live_check_survival_CFLAGS = $(live_cflags)
tests_live_check_survival_LDADD = $(live_libs)

tests_live_check_snapshots_SOURCES = tests/live/check_snapshots.c tests/bench/workload.c tests/bench/workload.h
tests_live_check_snapshots_CFLAGS = $(live_cflags) -I$(srcdir)/tests/bench
tests_live_check_snapshots_LDADD = $(live_libs)

tests_live_check_python_SOURCES = tests/live/check_python.c
tests_live_check_python_CFLAGS = $(live_cflags)
tests_live_check_python_LDADD = $(live_libs)
EXTRA_DIST += tests/live/seeds/run \
	tests/live/seeds/compare_to.py tests/live/seeds/compute_differences.py \
	tests/live/seeds/display_the_top_10.py tests/live/seeds/dump_and_load.py tests/live/seeds/filters.py \
	tests/live/seeds/locate_growth.py tests/live/seeds/pretty_top.py tests/live/seeds/statistics.py \
	tests/live/seeds/stop_and_clear.py tests/live/seeds/traceback_of_a_block.py \
	tests/live/seeds/useful_methods.py

# They stop programs by themselves, with the sampler of the benchmarks.
oracle_sources = tests/live/oracle.c tests/live/oracle.h \
	tests/bench/process_map.c tests/bench/process_map.h \
	tests/bench/sampler.c tests/bench/sampler.h
oracle_cflags = $(live_cflags) -I$(srcdir)/tests/bench $(UNWIND_CFLAGS)
oracle_libs = $(live_libs) src/libaw_unwind.a src/libarch.a src/libmodel.a src/libbase.a \
	$(DW_LIBS) $(ELF_LIBS) $(UNWIND_LIBS) $(ZYDIS_LIBS) -lm
tests_live_check_oracle_SOURCES = tests/live/check_oracle.c $(oracle_sources) \
	tests/bench/workload.c tests/bench/workload.h
tests_live_check_oracle_CFLAGS = $(oracle_cflags)
tests_live_check_oracle_LDADD = $(oracle_libs)

# The whole table is make matrix.
tests_live_check_matrix_SOURCES = tests/live/check_matrix.c tests/live/matrix.h \
	tests/live/matrix_daemon_rows.c tests/live/matrix_daemons.c \
	tests/live/matrix_rows.c tests/live/matrix_rows.h \
	$(oracle_sources)
tests_live_check_matrix_CFLAGS = $(oracle_cflags)
tests_live_check_matrix_LDADD = $(oracle_libs)
EXTRA_DIST += tests/oracle/stacks_and_names.py tests/live/matrix doc/MATRIX.md

# They run with what `auto` means, the ring engine, without ptrace.  These run with int3 as well, and with `make check-int3` all do.
int3_tests = \
	tests/live/int3_check_attach \
	tests/live/int3_check_exact \
	tests/live/int3_check_detach \
	tests/live/int3_check_execs \
	tests/live/int3_check_signals \
	tests/live/int3_check_heal
TESTS += $(int3_tests)
check_SCRIPTS = $(int3_tests)
CLEANFILES += $(int3_tests)
$(int3_tests): Makefile
	$(AM_V_GEN)$(MKDIR_P) tests/live && name=$@ && \
	printf '#!/bin/sh\nLIVE_ENGINE=int3 exec tests/live/%s "$$@"\n' "$${name#tests/live/int3_}" >$@.part && \
	chmod +x $@.part && mv $@.part $@
check-int3:
	LIVE_ENGINE=int3 $(MAKE) $(AM_MAKEFLAGS) check TESTS="$(live_tests)"
.PHONY: check-int3

# And these, or some cases of them, with ptrace held; with `make check-held` all do.
held_tests = \
	tests/live/held_check_calls \
	tests/live/held_check_exact \
	tests/live/held_check_execs \
	tests/live/held_check_ring \
	tests/live/held_check_signals
held_ring_cases = \
	snapshots_and_their_difference_are_of_the_moment_they_are_asked_for \
	the_place_of_an_allocator_that_has_gone_is_left_alone \
	a_clear_ends_what_a_loss_has_begun \
	jumps_that_are_overwritten_are_told_once
held_signals_cases = \
	a_handler_at_1_khz_allocates \
	a_handler_on_a_sigaltstack_allocates \
	handlers_allocate_in_the_midst_of_calls \
	a_call_that_a_signal_interrupts_is_counted_once \
	no_queued_signal_is_lost_doubled_or_reordered \
	signals_to_a_stopped_process_wait_for_its_continuation \
	no_wait_is_broken_off \
	a_sigtrap_handler_set_while_traced_stays \
	every_register_is_kept \
	signals_at_10_khz_hold_nobody_up
TESTS += $(held_tests)
check_SCRIPTS += $(held_tests)
CLEANFILES += $(held_tests)
$(held_tests): Makefile
	$(AM_V_GEN)$(MKDIR_P) tests/live && name=$@ && name=$${name#tests/live/held_} && \
	case $$name in check_ring) cases='$(held_ring_cases)' ;; check_signals) cases='$(held_signals_cases)' ;; *) cases= ;; esac && \
	printf '#!/bin/sh\n[ $$# -gt 0 ] || set -- %s\nLIVE_HOLD=1 exec tests/live/%s "$$@"\n' "$$cases" "$$name" >$@.part && \
	chmod +x $@.part && mv $@.part $@
check-held:
	LIVE_HOLD=1 $(MAKE) $(AM_MAKEFLAGS) check TESTS="$(live_tests)"
.PHONY: check-held

# The long form: minutes to hours, by the counts in live_rounds(); that of check_chaos is a target of its own.
torture: $(check_PROGRAMS) $(check_DATA) all
	$(srcdir)/tests/live/torture $(torture_tests)
# Tracer, daemon and healer are killed 2000 times, at random moments of every phase.
chaos: tests/live/check_chaos $(check_PROGRAMS) $(check_DATA) all
	$(srcdir)/tests/live/torture tests/live/check_chaos
# A day of use in that many seconds: nothing may grow.
LOAD_SECONDS = 1200
load: tests/live/check_load $(check_PROGRAMS) $(check_DATA) all
	srcdir=$(srcdir) LIVE_TORTURE=1 LOAD_SECONDS=$(LOAD_SECONDS) tests/live/check_load
# Every kind of program with each engine, as a table.
matrix: tests/live/check_matrix $(check_PROGRAMS) $(check_DATA) all
	$(srcdir)/tests/live/matrix
EXTRA_DIST += tests/live/torture
.PHONY: torture chaos load matrix

# Needs the packages prometheus and python3-prometheus-client.
TESTS += tests/live/check_metrics
EXTRA_DIST += tests/live/check_metrics
# Needs golang-go and golang-github-varlink-go-dev.
TESTS += tests/live/check_varlink_go
EXTRA_DIST += tests/live/check_varlink_go tests/live/go/client.go
