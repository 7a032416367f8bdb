if HAVE_CHECK
check_PROGRAMS += tests/unit/check_cut tests/unit/check_forms tests/unit/check_losses tests/unit/check_probe tests/unit/check_room tests/unit/check_ring_pressure tests/unit/check_serve tests/unit/check_spared \
	tests/unit/check_tick_clock
TESTS += tests/unit/check_cut tests/unit/check_forms tests/unit/check_losses tests/unit/check_probe tests/unit/check_room tests/unit/check_ring_pressure tests/unit/check_serve tests/unit/check_spared \
	tests/unit/check_tick_clock
tests_unit_check_probe_SOURCES = tests/unit/check_probe.c
tests_unit_check_probe_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_probe_LDADD = src/libprobe.a src/libring.a src/libtarget.a src/libaw_unwind.a src/libarch.a src/libmodel.a \
	src/libbase.a $(DW_LIBS) $(ELF_LIBS) $(UNWIND_LIBS) $(ZYDIS_LIBS) $(CHECK_LIBS)

tests_unit_check_cut_SOURCES = tests/unit/check_cut.c
tests_unit_check_cut_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_cut_LDADD = $(tests_unit_check_probe_LDADD)
tests_unit_check_forms_SOURCES = tests/unit/check_forms.c
tests_unit_check_forms_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_forms_LDADD = $(tests_unit_check_probe_LDADD)
tests_unit_check_losses_SOURCES = tests/unit/check_losses.c
tests_unit_check_losses_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_losses_LDADD = $(tests_unit_check_probe_LDADD)
tests_unit_check_room_SOURCES = tests/unit/check_room.c
tests_unit_check_room_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_room_LDADD = $(tests_unit_check_probe_LDADD)
tests_unit_check_ring_pressure_SOURCES = tests/unit/check_ring_pressure.c
tests_unit_check_ring_pressure_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ring_pressure_LDADD = $(tests_unit_check_probe_LDADD)
tests_unit_check_serve_SOURCES = tests/unit/check_serve.c
tests_unit_check_serve_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_serve_LDADD = $(tests_unit_check_probe_LDADD)
tests_unit_check_spared_SOURCES = tests/unit/check_spared.c
tests_unit_check_spared_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_spared_LDADD = $(tests_unit_check_probe_LDADD)
tests_unit_check_tick_clock_SOURCES = tests/unit/check_tick_clock.c
tests_unit_check_tick_clock_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_tick_clock_LDADD = $(tests_unit_check_probe_LDADD)
endif
