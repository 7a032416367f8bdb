# Programs that the live tests watch; see victim.h.  Built without sanitizers and coverage, so that
# their heap is what they say it is, and without builtins, so that no allocation is optimised away.
victim_cflags = -std=gnu11 -g -fno-builtin $(WARN_CFLAGS)
victim_cxxflags = -g -fno-builtin -Wall -Wextra
victim_ldflags = -pthread
victim_libs = tests/victims/libvictim.a

check_LIBRARIES += tests/victims/libvictim.a
tests_victims_libvictim_a_SOURCES = tests/victims/text.c tests/victims/victim.c tests/victims/victim.h
tests_victims_libvictim_a_CFLAGS = $(victim_cflags)

check_PROGRAMS += \
	tests/victims/beside \
	tests/victims/births \
	tests/victims/brief \
	tests/victims/callers \
	tests/victims/brief_padded \
	tests/victims/brief_static \
	tests/victims/brief_static_pie \
	tests/victims/clockwork \
	tests/victims/clones \
	tests/victims/confined \
	tests/victims/eater \
	tests/victims/eater_moved \
	tests/victims/execer \
	tests/victims/filtered \
	tests/victims/forker \
	tests/victims/forker_padded \
	tests/victims/forker_static \
	tests/victims/forks \
	tests/victims/forktree \
	tests/victims/grower \
	tests/victims/hammer \
	tests/victims/hammer_alone \
	tests/victims/held \
	tests/victims/holes \
	tests/victims/remapped \
	tests/victims/interrupted \
	tests/victims/jitted \
	tests/victims/hostile \
	tests/victims/int3s \
	tests/victims/jumper \
	tests/victims/leaker \
	tests/victims/leaver \
	tests/victims/mainless \
	tests/victims/mappings \
	tests/victims/mappings_static \
	tests/victims/breaks \
	tests/victims/breaks_padded \
	tests/victims/masks \
	tests/victims/nested \
	tests/victims/otherids \
	tests/victims/places \
	tests/victims/plugins \
	tests/victims/privileged \
	tests/victims/profiled \
	tests/victims/recursion \
	tests/victims/redzone \
	tests/victims/registers \
	tests/victims/resizes \
	tests/victims/rtsignals \
	tests/victims/shadowed \
	tests/victims/sampled \
	tests/victims/sharer \
	tests/victims/spawner \
	tests/victims/stormed \
	tests/victims/stormed_dawdling \
	tests/victims/tallies \
	tests/victims/ticker \
	tests/victims/trapper \
	tests/victims/traps \
	tests/victims/twins \
	tests/victims/twins_moved \
	tests/victims/twins_plain \
	tests/victims/twins_plain_moved \
	tests/victims/turnover \
	tests/victims/unborn \
	tests/victims/vforker \
	tests/victims/waiters \
	tests/victims/watched \
	tests/victims/tiny32 \
	tests/victims/nomalloc

tests_victims_beside_SOURCES = tests/victims/beside.c tests/victims/beside_code.S
tests_victims_beside_CFLAGS = $(victim_cflags)
tests_victims_beside_CCASFLAGS = -g
tests_victims_beside_LDFLAGS = $(victim_ldflags)
tests_victims_beside_LDADD = $(victim_libs)

tests_victims_mappings_SOURCES = tests/victims/mappings.c
tests_victims_mappings_CFLAGS = $(victim_cflags)
tests_victims_mappings_LDFLAGS = $(victim_ldflags)
tests_victims_mappings_LDADD = $(victim_libs)
tests_victims_mappings_static_SOURCES = tests/victims/mappings.c
tests_victims_mappings_static_CFLAGS = $(victim_cflags)
tests_victims_mappings_static_LDFLAGS = $(victim_ldflags) -static
tests_victims_mappings_static_LDADD = $(victim_libs)

tests_victims_traps_SOURCES = tests/victims/traps.c
tests_victims_traps_CFLAGS = $(victim_cflags)
tests_victims_traps_LDFLAGS = $(victim_ldflags)
tests_victims_traps_LDADD = $(victim_libs)

tests_victims_stormed_SOURCES = tests/victims/stormed.c
tests_victims_stormed_CFLAGS = $(victim_cflags)
tests_victims_stormed_LDFLAGS = $(victim_ldflags)
tests_victims_stormed_LDADD = $(victim_libs)

tests_victims_stormed_dawdling_SOURCES = tests/victims/stormed.c tests/victims/dawdling.S
tests_victims_stormed_dawdling_CFLAGS = $(victim_cflags)
tests_victims_stormed_dawdling_LDFLAGS = $(victim_ldflags)
tests_victims_stormed_dawdling_LDADD = $(victim_libs)

tests_victims_unborn_SOURCES = tests/victims/unborn.c
tests_victims_unborn_CFLAGS = $(victim_cflags)
tests_victims_unborn_LDFLAGS = $(victim_ldflags)
tests_victims_unborn_LDADD = $(victim_libs)

tests_victims_tallies_SOURCES = tests/victims/tallies.c tests/victims/tallies.h
tests_victims_tallies_CFLAGS = $(victim_cflags)
tests_victims_tallies_LDFLAGS = $(victim_ldflags)
tests_victims_tallies_LDADD = $(victim_libs)

tests_victims_watched_SOURCES = tests/victims/watched.c
tests_victims_watched_CFLAGS = $(victim_cflags)
tests_victims_watched_LDFLAGS = $(victim_ldflags)
tests_victims_watched_LDADD = $(victim_libs)

tests_victims_births_SOURCES = tests/victims/births.c
tests_victims_births_CFLAGS = $(victim_cflags)
tests_victims_births_LDFLAGS = $(victim_ldflags)
tests_victims_births_LDADD = $(victim_libs)

tests_victims_brief_SOURCES = tests/victims/brief.c
tests_victims_brief_CFLAGS = $(victim_cflags)
tests_victims_brief_LDFLAGS = $(victim_ldflags)
tests_victims_brief_LDADD = $(victim_libs)
tests_victims_brief_padded_SOURCES = tests/victims/brief.c
tests_victims_brief_padded_CFLAGS = $(victim_cflags) -DPADDING
tests_victims_brief_padded_LDFLAGS = $(victim_ldflags) -static
tests_victims_brief_padded_LDADD = $(victim_libs)
tests_victims_brief_static_SOURCES = tests/victims/brief.c
tests_victims_brief_static_CFLAGS = $(victim_cflags)
tests_victims_brief_static_LDFLAGS = $(victim_ldflags) -static
tests_victims_brief_static_LDADD = $(victim_libs)
tests_victims_brief_static_pie_SOURCES = tests/victims/brief.c
tests_victims_brief_static_pie_CFLAGS = $(victim_cflags) -fPIE
tests_victims_brief_static_pie_LDFLAGS = $(victim_ldflags) -static-pie
tests_victims_brief_static_pie_LDADD = $(victim_libs)

tests_victims_holes_SOURCES = tests/victims/holes.c
tests_victims_holes_CFLAGS = $(victim_cflags)
tests_victims_holes_LDFLAGS = $(victim_ldflags)
tests_victims_holes_LDADD = $(victim_libs)
tests_victims_remapped_SOURCES = tests/victims/remapped.c
tests_victims_remapped_CFLAGS = $(victim_cflags)
tests_victims_remapped_LDFLAGS = $(victim_ldflags)
tests_victims_remapped_LDADD = $(victim_libs)

tests_victims_callers_SOURCES = tests/victims/callers.c
tests_victims_callers_CFLAGS = $(victim_cflags)
tests_victims_callers_LDFLAGS = $(victim_ldflags)
tests_victims_callers_LDADD = $(victim_libs)

tests_victims_confined_SOURCES = tests/victims/confined.c
tests_victims_confined_CFLAGS = $(victim_cflags)
tests_victims_confined_LDFLAGS = $(victim_ldflags)
tests_victims_confined_LDADD = $(victim_libs)

tests_victims_execer_SOURCES = tests/victims/execer.c
tests_victims_execer_CFLAGS = $(victim_cflags)
tests_victims_execer_LDFLAGS = $(victim_ldflags)
tests_victims_execer_LDADD = $(victim_libs)

tests_victims_filtered_SOURCES = tests/victims/filtered.c
tests_victims_filtered_CFLAGS = $(victim_cflags)
tests_victims_filtered_LDFLAGS = $(victim_ldflags)
tests_victims_filtered_LDADD = $(victim_libs)

tests_victims_forker_padded_SOURCES = tests/victims/forker.c
tests_victims_forker_padded_CFLAGS = $(victim_cflags) -DPADDING
tests_victims_forker_padded_LDFLAGS = $(victim_ldflags) -static
tests_victims_forker_padded_LDADD = $(victim_libs)
tests_victims_forker_static_SOURCES = tests/victims/forker.c
tests_victims_forker_static_CFLAGS = $(victim_cflags)
tests_victims_forker_static_LDFLAGS = $(victim_ldflags) -static
tests_victims_forker_static_LDADD = $(victim_libs)
tests_victims_forker_SOURCES = tests/victims/forker.c
tests_victims_forker_CFLAGS = $(victim_cflags)
tests_victims_forker_LDFLAGS = $(victim_ldflags)
tests_victims_forker_LDADD = $(victim_libs)

tests_victims_privileged_SOURCES = tests/victims/privileged.c
tests_victims_privileged_CFLAGS = $(victim_cflags)
tests_victims_privileged_LDFLAGS = $(victim_ldflags)
tests_victims_privileged_LDADD = $(victim_libs)

tests_victims_nested_SOURCES = tests/victims/nested.c
tests_victims_nested_CFLAGS = $(victim_cflags)
tests_victims_nested_LDFLAGS = $(victim_ldflags)
tests_victims_nested_LDADD = $(victim_libs)

tests_victims_vforker_SOURCES = tests/victims/vforker.c
tests_victims_vforker_CFLAGS = $(victim_cflags)
tests_victims_vforker_LDFLAGS = $(victim_ldflags)
tests_victims_vforker_LDADD = $(victim_libs)

tests_victims_sampled_SOURCES = tests/victims/sampled.c
tests_victims_sampled_CFLAGS = $(victim_cflags)
tests_victims_sampled_LDFLAGS = $(victim_ldflags)
tests_victims_sampled_LDADD = $(victim_libs)
tests_victims_sharer_SOURCES = tests/victims/sharer.c
tests_victims_sharer_CFLAGS = $(victim_cflags)
tests_victims_sharer_LDFLAGS = $(victim_ldflags)
tests_victims_sharer_LDADD = $(victim_libs)

tests_victims_clones_SOURCES = tests/victims/clones.c
tests_victims_clones_CFLAGS = $(victim_cflags)
tests_victims_clones_LDFLAGS = $(victim_ldflags)
tests_victims_clones_LDADD = $(victim_libs)

tests_victims_otherids_SOURCES = tests/victims/otherids.c
tests_victims_otherids_CFLAGS = $(victim_cflags)
tests_victims_otherids_LDFLAGS = $(victim_ldflags)
tests_victims_otherids_LDADD = $(victim_libs)

tests_victims_forks_SOURCES = tests/victims/forks.c
tests_victims_forks_CFLAGS = $(victim_cflags)
tests_victims_forks_LDFLAGS = $(victim_ldflags)
tests_victims_forks_LDADD = $(victim_libs)

tests_victims_masks_SOURCES = tests/victims/masks.c
tests_victims_masks_CFLAGS = $(victim_cflags)
tests_victims_masks_LDFLAGS = $(victim_ldflags)
tests_victims_masks_LDADD = $(victim_libs)
tests_victims_forktree_SOURCES = tests/victims/forktree.c
tests_victims_forktree_CFLAGS = $(victim_cflags)
tests_victims_forktree_LDFLAGS = $(victim_ldflags)
tests_victims_forktree_LDADD = $(victim_libs)

tests_victims_held_SOURCES = tests/victims/held.c
tests_victims_held_CFLAGS = $(victim_cflags)
tests_victims_held_LDFLAGS = $(victim_ldflags)
tests_victims_held_LDADD = $(victim_libs) -ldl

tests_victims_hostile_SOURCES = tests/victims/hostile.c
tests_victims_hostile_CFLAGS = $(victim_cflags) -D_GNU_SOURCE
tests_victims_hostile_LDFLAGS = $(victim_ldflags)
tests_victims_hostile_LDADD = $(victim_libs) -ldl

# For tests in which nobody else is to heal it: who heals looks at all processes of a program.
tests_victims_hammer_alone_SOURCES = tests/victims/hammer.c
tests_victims_hammer_alone_CFLAGS = $(victim_cflags)
tests_victims_hammer_alone_LDFLAGS = $(victim_ldflags)
tests_victims_hammer_alone_LDADD = $(victim_libs)
tests_victims_hammer_SOURCES = tests/victims/hammer.c
tests_victims_hammer_CFLAGS = $(victim_cflags)
tests_victims_hammer_LDFLAGS = $(victim_ldflags)
tests_victims_hammer_LDADD = $(victim_libs)

tests_victims_interrupted_SOURCES = tests/victims/interrupted.c
tests_victims_interrupted_CFLAGS = $(victim_cflags)
tests_victims_interrupted_LDFLAGS = $(victim_ldflags)
tests_victims_interrupted_LDADD = $(victim_libs)

tests_victims_jumper_SOURCES = tests/victims/jumper.c
tests_victims_jumper_CFLAGS = $(victim_cflags)
tests_victims_jumper_LDFLAGS = $(victim_ldflags)
tests_victims_jumper_LDADD = $(victim_libs)

tests_victims_leaver_SOURCES = tests/victims/leaver.c
tests_victims_leaver_CFLAGS = $(victim_cflags)
tests_victims_leaver_LDFLAGS = $(victim_ldflags)
tests_victims_leaver_LDADD = $(victim_libs)

tests_victims_mainless_SOURCES = tests/victims/mainless.c
tests_victims_mainless_CFLAGS = $(victim_cflags)
tests_victims_mainless_LDFLAGS = $(victim_ldflags)
tests_victims_mainless_LDADD = $(victim_libs)

tests_victims_breaks_SOURCES = tests/victims/breaks.c
tests_victims_breaks_CFLAGS = $(victim_cflags) -fno-pie
tests_victims_breaks_LDFLAGS = $(victim_ldflags) -static
tests_victims_breaks_LDADD = $(victim_libs)
tests_victims_breaks_padded_SOURCES = tests/victims/breaks.c
tests_victims_breaks_padded_CFLAGS = $(victim_cflags) -fno-pie -DPADDING
tests_victims_breaks_padded_LDFLAGS = $(victim_ldflags) -static
tests_victims_breaks_padded_LDADD = $(victim_libs)

tests_victims_places_SOURCES = tests/victims/places.c
tests_victims_places_CFLAGS = $(victim_cflags)
tests_victims_places_LDFLAGS = $(victim_ldflags)
tests_victims_places_LDADD = $(victim_libs)

tests_victims_plugins_SOURCES = tests/victims/plugins.c
tests_victims_plugins_CFLAGS = $(victim_cflags)
tests_victims_plugins_LDFLAGS = $(victim_ldflags)
tests_victims_plugins_LDADD = $(victim_libs)

tests_victims_clockwork_SOURCES = tests/victims/clockwork.c
tests_victims_clockwork_CFLAGS = $(victim_cflags)
tests_victims_clockwork_LDFLAGS = $(victim_ldflags)
tests_victims_clockwork_LDADD = $(victim_libs)

tests_victims_recursion_SOURCES = tests/victims/recursion.c
tests_victims_recursion_CFLAGS = $(victim_cflags)
tests_victims_recursion_LDFLAGS = $(victim_ldflags)
tests_victims_recursion_LDADD = $(victim_libs)

tests_victims_redzone_SOURCES = tests/victims/redzone.c
tests_victims_redzone_CFLAGS = $(victim_cflags)
tests_victims_redzone_LDFLAGS = $(victim_ldflags)
tests_victims_redzone_LDADD = $(victim_libs)

tests_victims_registers_SOURCES = tests/victims/registers.c
tests_victims_registers_CFLAGS = $(victim_cflags)
tests_victims_registers_LDFLAGS = $(victim_ldflags)
tests_victims_registers_LDADD = $(victim_libs)

tests_victims_resizes_SOURCES = tests/victims/resizes.c
tests_victims_resizes_CFLAGS = $(victim_cflags)
tests_victims_resizes_LDFLAGS = $(victim_ldflags)
tests_victims_resizes_LDADD = $(victim_libs)

tests_victims_rtsignals_SOURCES = tests/victims/rtsignals.c
tests_victims_rtsignals_CFLAGS = $(victim_cflags)
tests_victims_rtsignals_LDFLAGS = $(victim_ldflags)
tests_victims_rtsignals_LDADD = $(victim_libs)

tests_victims_trapper_SOURCES = tests/victims/trapper.c
tests_victims_trapper_CFLAGS = $(victim_cflags)
tests_victims_trapper_LDFLAGS = $(victim_ldflags)
tests_victims_trapper_LDADD = $(victim_libs)

tests_victims_int3s_SOURCES = tests/victims/int3s.c
tests_victims_int3s_CFLAGS = $(victim_cflags)
tests_victims_int3s_LDFLAGS = $(victim_ldflags)
tests_victims_int3s_LDADD = $(victim_libs)

tests_victims_leaker_SOURCES = tests/victims/leaker.c
tests_victims_leaker_CFLAGS = $(victim_cflags)
tests_victims_leaker_LDFLAGS = $(victim_ldflags)
tests_victims_leaker_LDADD = $(victim_libs)

tests_victims_eater_SOURCES = tests/victims/eater.c
tests_victims_eater_CFLAGS = $(victim_cflags)
tests_victims_eater_LDFLAGS = $(victim_ldflags)
tests_victims_eater_LDADD = $(victim_libs)

# The same program after forty lines were added to it above its functions.
nodist_tests_victims_eater_moved_SOURCES = tests/victims/moved/eater.c
tests_victims_eater_moved_CFLAGS = $(victim_cflags) -I$(srcdir)/tests/victims
tests_victims_eater_moved_LDFLAGS = $(victim_ldflags)
tests_victims_eater_moved_LDADD = $(victim_libs)
CLEANFILES += tests/victims/moved/eater.c
tests/victims/moved/eater.c: tests/victims/eater.c
	$(AM_V_GEN)$(MKDIR_P) tests/victims/moved && { yes '' | head -n 40; cat $(srcdir)/tests/victims/eater.c; } >$@.tmp && mv $@.tmp $@
# Another build of two files; and both without build-ids.
tests_victims_twins_SOURCES = tests/victims/twins.c tests/victims/twins_other.c tests/victims/twins.h
tests_victims_twins_CFLAGS = $(victim_cflags)
tests_victims_twins_LDFLAGS = $(victim_ldflags)
tests_victims_twins_LDADD = $(victim_libs)
nodist_tests_victims_twins_moved_SOURCES = tests/victims/moved/twins.c tests/victims/moved/twins_other.c
tests_victims_twins_moved_CFLAGS = $(victim_cflags) -I$(srcdir)/tests/victims
tests_victims_twins_moved_LDFLAGS = $(victim_ldflags)
tests_victims_twins_moved_LDADD = $(victim_libs)
tests_victims_twins_plain_SOURCES = $(tests_victims_twins_SOURCES)
tests_victims_twins_plain_CFLAGS = $(victim_cflags)
tests_victims_twins_plain_LDFLAGS = $(victim_ldflags) -Wl,--build-id=none
tests_victims_twins_plain_LDADD = $(victim_libs)
nodist_tests_victims_twins_plain_moved_SOURCES = $(nodist_tests_victims_twins_moved_SOURCES)
tests_victims_twins_plain_moved_CFLAGS = $(victim_cflags) -I$(srcdir)/tests/victims
tests_victims_twins_plain_moved_LDFLAGS = $(victim_ldflags) -Wl,--build-id=none
tests_victims_twins_plain_moved_LDADD = $(victim_libs)
CLEANFILES += tests/victims/moved/twins.c tests/victims/moved/twins_other.c
tests/victims/moved/twins.c: tests/victims/twins.c
	$(AM_V_GEN)$(MKDIR_P) tests/victims/moved && { yes '' | head -n 40; cat $(srcdir)/tests/victims/twins.c; } >$@.tmp && mv $@.tmp $@
tests/victims/moved/twins_other.c: tests/victims/twins_other.c
	$(AM_V_GEN)$(MKDIR_P) tests/victims/moved && { yes '' | head -n 40; cat $(srcdir)/tests/victims/twins_other.c; } >$@.tmp && mv $@.tmp $@

tests_victims_grower_SOURCES = tests/victims/grower.c
tests_victims_grower_CFLAGS = $(victim_cflags)
tests_victims_grower_LDFLAGS = $(victim_ldflags)
tests_victims_grower_LDADD = $(victim_libs)

tests_victims_jitted_SOURCES = tests/victims/jitted.c
tests_victims_jitted_CFLAGS = $(victim_cflags)
tests_victims_jitted_LDFLAGS = $(victim_ldflags)
tests_victims_jitted_LDADD = $(victim_libs)

tests_victims_shadowed_SOURCES = tests/victims/shadowed.c
tests_victims_shadowed_CFLAGS = $(victim_cflags)
tests_victims_shadowed_LDFLAGS = $(victim_ldflags)
tests_victims_shadowed_LDADD = $(victim_libs)

tests_victims_turnover_SOURCES = tests/victims/turnover.c
tests_victims_turnover_CFLAGS = $(victim_cflags)
tests_victims_turnover_LDFLAGS = $(victim_ldflags)
tests_victims_turnover_LDADD = $(victim_libs)

# Built by their tests, in many ways.
EXTRA_DIST += tests/victims/builds.c tests/victims/builds.h tests/victims/builds_more.c \
	tests/victims/builds_coroutines.c tests/victims/builds_deep.c tests/victims/builds_large.c \
	tests/victims/builds_objects.c \
	tests/victims/builds_threads.c tests/victims/object.c tests/victims/ifuncs.c tests/victims/ifuncs.map \
	tests/victims/boxes.rs tests/victims/boxes_jemalloc.rs tests/victims/cgo.go tests/victims/news.cc tests/victims/ownnews.cc tests/victims/leaky.c tests/victims/containers.cc tests/victims/crowded.h tests/victims/list.c tests/victims/misuses.cc tests/victims/pools.c tests/victims/prefixed.c tests/victims/twice.c tests/victims/vectors.rs \
	tests/victims/wrappers.c tests/victims/wrappers.h

tests_victims_spawner_SOURCES = tests/victims/spawner.c
tests_victims_spawner_CFLAGS = $(victim_cflags)
tests_victims_spawner_LDFLAGS = $(victim_ldflags)
tests_victims_spawner_LDADD = $(victim_libs)

tests_victims_profiled_SOURCES = tests/victims/profiled.c
tests_victims_profiled_CFLAGS = $(victim_cflags)
tests_victims_profiled_LDFLAGS = $(victim_ldflags)
tests_victims_profiled_LDADD = $(victim_libs)
tests_victims_ticker_SOURCES = tests/victims/ticker.c
tests_victims_ticker_CFLAGS = $(victim_cflags)
tests_victims_ticker_LDFLAGS = $(victim_ldflags)
tests_victims_ticker_LDADD = $(victim_libs)

tests_victims_waiters_SOURCES = tests/victims/waiters.c
tests_victims_waiters_CFLAGS = $(victim_cflags)
tests_victims_waiters_LDFLAGS = $(victim_ldflags)
tests_victims_waiters_LDADD = $(victim_libs)

# Two without any library; one of them is a 32-bit program, which needs no 32-bit library either.
tests_victims_nomalloc_SOURCES = tests/victims/nomalloc.S
tests_victims_nomalloc_CCASFLAGS = -g
tests_victims_nomalloc_LDFLAGS = -nostdlib -static
tests_victims_tiny32_SOURCES = tests/victims/tiny32.S
tests_victims_tiny32_CCASFLAGS = -g -m32
tests_victims_tiny32_LDFLAGS = -m32 -nostdlib -static

if HAVE_CXX
check_PROGRAMS += tests/victims/escapes tests/victims/newhandlers tests/victims/newonly
tests_victims_escapes_SOURCES = tests/victims/escapes.cc
tests_victims_escapes_CXXFLAGS = $(victim_cxxflags)
tests_victims_escapes_LDFLAGS = $(victim_ldflags)
tests_victims_escapes_LDADD = $(victim_libs)
tests_victims_newhandlers_SOURCES = tests/victims/newhandlers.cc
tests_victims_newhandlers_CXXFLAGS = $(victim_cxxflags) -std=c++17
tests_victims_newhandlers_LDFLAGS = $(victim_ldflags)
tests_victims_newhandlers_LDADD = $(victim_libs)
tests_victims_newonly_SOURCES = tests/victims/newonly.cc
tests_victims_newonly_CXXFLAGS = $(victim_cxxflags)
tests_victims_newonly_LDFLAGS = $(victim_ldflags)
tests_victims_newonly_LDADD = $(victim_libs)
endif

# Shared objects that victims load themselves.
check_DATA += tests/victims/plugin.so tests/victims/otherplugin.so tests/victims/ownmalloc.so tests/victims/idle.so tests/victims/registers_lib.so \
	tests/victims/wrapper.so
EXTRA_DIST += tests/victims/plugin.c tests/victims/ownmalloc.c tests/victims/registers_lib.S tests/victims/wrapper.c
CLEANFILES += tests/victims/plugin.so tests/victims/otherplugin.so tests/victims/ownmalloc.so tests/victims/idle.so tests/victims/registers_lib.so \
	tests/victims/wrapper.so
victim_link_shared = $(CC) $(victim_cflags) $(CFLAGS) -fPIC -shared -o $@

tests/victims/plugin.so: tests/victims/plugin.c
	$(AM_V_CCLD)$(MKDIR_P) tests/victims && $(victim_link_shared) $(srcdir)/tests/victims/plugin.c
tests/victims/otherplugin.so: tests/victims/plugin.c
	$(AM_V_CCLD)$(MKDIR_P) tests/victims && $(victim_link_shared) -DPLUGIN_BYTES=222 $(srcdir)/tests/victims/plugin.c
tests/victims/ownmalloc.so: tests/victims/ownmalloc.c
	$(AM_V_CCLD)$(MKDIR_P) tests/victims && $(victim_link_shared) $(srcdir)/tests/victims/ownmalloc.c
tests/victims/idle.so: tests/victims/ownmalloc.c
	$(AM_V_CCLD)$(MKDIR_P) tests/victims && $(victim_link_shared) -Dmalloc=idle_m -Dfree=idle_f -Dcalloc=idle_c -Drealloc=idle_r \
		-DIDLE $(srcdir)/tests/victims/ownmalloc.c
tests/victims/registers_lib.so: tests/victims/registers_lib.S
	$(AM_V_CCLD)$(MKDIR_P) tests/victims && $(victim_link_shared) $(srcdir)/tests/victims/registers_lib.S
tests/victims/wrapper.so: tests/victims/wrapper.c
	$(AM_V_CCLD)$(MKDIR_P) tests/victims && $(victim_link_shared) $(srcdir)/tests/victims/wrapper.c
