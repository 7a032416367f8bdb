# Fuzz targets: in builds with sanitizers (--enable-sanitizers) run for a moment in the suite.  `make fuzz` has a build
# of its own, with libFuzzer where clang has it.
fuzz_programs = tests/fuzz/fuzz_client tests/fuzz/fuzz_daemon tests/fuzz/fuzz_files tests/fuzz/fuzz_symbols \
	tests/fuzz/fuzz_tracer
fuzz_tests = tests/fuzz/check_fuzz
fuzz_cflags = $(AM_CFLAGS) -I$(srcdir)/tests/fuzz $(FUZZ_FLAGS)
fuzz_driver = tests/fuzz/driver.c tests/fuzz/fuzz.h
fuzz_json = tests/fuzz/json.c tests/fuzz/json.h
fuzz_use_snapshot = tests/fuzz/use_snapshot.c tests/fuzz/use_snapshot.h
if SANITIZED
check_PROGRAMS += $(fuzz_programs)
TESTS += $(fuzz_tests)
else
EXTRA_PROGRAMS += $(fuzz_programs)
endif

# Checksums of snapshot files are not looked at there: who means harm can compute them.
tests_fuzz_fuzz_files_SOURCES = tests/fuzz/fuzz_files.c tests/fuzz/files.h tests/fuzz/fuzz_store.c tests/fuzz/fuzz_image.c \
	tests/fuzz/fuzz_filter.c $(fuzz_use_snapshot) $(fuzz_driver) src/store/load.c
tests_fuzz_fuzz_files_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
tests_fuzz_fuzz_files_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_files_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_files_LDADD = src/libstore.a src/libexport.a src/libmodel.a src/libbase.a $(SQLITE_LIBS) -lm

tests_fuzz_fuzz_tracer_SOURCES = tests/fuzz/fuzz_tracer.c tests/fuzz/tracer.h tests/fuzz/fuzz_cfi.c tests/fuzz/fuzz_code.c \
	tests/fuzz/fuzz_elf.c tests/fuzz/fuzz_maps.c tests/fuzz/fuzz_refuge.c tests/fuzz/fuzz_resident.c $(fuzz_driver)
tests_fuzz_fuzz_tracer_CFLAGS = $(fuzz_cflags) $(DW_CFLAGS) $(ELF_CFLAGS)
tests_fuzz_fuzz_tracer_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_tracer_LDADD = src/tracer/allocwatch_tracer-recall.$(OBJEXT) src/tracer/allocwatch_tracer-privileges.$(OBJEXT) \
	src/libprobe.a src/libring.a src/libtarget.a src/libaw_unwind.a src/libarch.a src/libwire.a src/libmodel.a src/libbase.a \
	$(DW_LIBS) $(ELF_LIBS) $(UNWIND_LIBS) $(ZYDIS_LIBS) -lm

EXTRA_PROGRAMS += tests/fuzz/image_seeds
tests_fuzz_image_seeds_SOURCES = tests/fuzz/image_seeds.c
tests_fuzz_image_seeds_LDADD = src/libmodel.a src/libbase.a -lm

# For FUZZ_SECONDS (60) each; FUZZ_TARGETS names some.
fuzz:
	$(srcdir)/tests/fuzz/long_run $(srcdir)
.PHONY: fuzz
EXTRA_DIST += tests/fuzz/check_fuzz tests/fuzz/long_run tests/fuzz/make_seeds tests/fuzz/make_store_seeds tests/fuzz/targets \
	tests/fuzz/seeds

# stand_ins.c has what daemon/tracer.c, daemon/symbolizer.c and daemon/log.c have, which are not linked then.
tests_fuzz_fuzz_daemon_SOURCES = tests/fuzz/fuzz_daemon.c tests/fuzz/daemon.h tests/fuzz/fuzz_messages.c tests/fuzz/fuzz_socket.c tests/fuzz/fuzz_wire.c \
	tests/fuzz/host.c tests/fuzz/stand_ins.c $(fuzz_json) $(fuzz_driver)
tests_fuzz_fuzz_daemon_CFLAGS = $(fuzz_cflags) $(SYSTEMD_CFLAGS) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_daemon_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_daemon_LDADD = src/libdaemon.a $(DAEMON_LIBS)

tests_fuzz_fuzz_client_SOURCES = tests/fuzz/fuzz_client.c $(fuzz_json) $(fuzz_driver)
tests_fuzz_fuzz_client_CFLAGS = $(fuzz_cflags) $(JANSSON_CFLAGS)
tests_fuzz_fuzz_client_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS) -Wl,--wrap=connect
tests_fuzz_fuzz_client_LDADD = src/libcli.a src/libexport.a src/libstore.a src/libvarlink.a src/libmodel.a src/libbase.a \
	$(JANSSON_LIBS) $(SQLITE_LIBS) $(CURSES_LIBS) -lm

tests_fuzz_fuzz_symbols_SOURCES = tests/fuzz/fuzz_symbols.c $(fuzz_driver)
tests_fuzz_fuzz_symbols_CFLAGS = $(fuzz_cflags) $(DW_CFLAGS) $(ELF_CFLAGS)
tests_fuzz_fuzz_symbols_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_FLAGS)
tests_fuzz_fuzz_symbols_LDADD = src/libsymbol.a src/libsymbolwire.a src/libbase.a $(DW_LIBS) $(ELF_LIBS) $(LZMA_LIBS) $(IBERTY_LIBS)
