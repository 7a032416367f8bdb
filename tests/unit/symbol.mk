if HAVE_CHECK
check_PROGRAMS += tests/unit/check_jit_names tests/unit/check_symbol tests/unit/check_symbol_parts \
	tests/unit/check_symbol_server tests/unit/check_symbolize tests/unit/check_symbolize_debug \
	tests/unit/check_names_file tests/unit/fake_symbolizer
TESTS += tests/unit/check_jit_names tests/unit/check_symbol tests/unit/check_symbol_parts tests/unit/check_symbol_server \
	tests/unit/check_symbolize tests/unit/check_symbolize_debug tests/unit/check_names_file
tests_unit_check_symbol_SOURCES = tests/unit/check_symbol.c \
	tests/unit/symbol_fixture.c tests/unit/symbol_fixture.h
# Debug information names files without "..", which abs_top_srcdir may hold.
symbol_data = -DSYMBOL_DATA="\"`cd $(srcdir)/tests/unit/symbol_data && pwd -P`\""
tests_unit_check_symbol_CPPFLAGS = $(AM_CPPFLAGS) $(symbol_data)
tests_unit_check_symbol_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(ELF_CFLAGS)
tests_unit_check_symbol_LDADD = src/libsymbol.a src/libbase.a $(DW_LIBS) $(ELF_LIBS) $(IBERTY_LIBS) \
	$(CHECK_LIBS)

tests_unit_check_jit_names_SOURCES = tests/unit/check_jit_names.c
tests_unit_check_jit_names_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_jit_names_LDADD = src/libsymbol.a src/libbase.a $(CHECK_LIBS)

tests_unit_check_symbol_parts_SOURCES = tests/unit/check_symbol_parts.c
tests_unit_check_symbol_parts_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_symbol_parts_LDADD = src/libsymbol.a src/libbase.a $(IBERTY_LIBS) $(CHECK_LIBS)

tests_unit_check_symbol_server_SOURCES = tests/unit/check_symbol_server.c \
	tests/unit/symbolizer_client.c tests/unit/symbolizer_client.h \
	tests/unit/symbol_fixture.c tests/unit/symbol_fixture.h
tests_unit_check_symbol_server_CPPFLAGS = $(AM_CPPFLAGS) \
	$(symbol_data) -DLARGE_OBJECT="\"`cd $(srcdir)/tests/bench && pwd -P`/large_object\"" \
	-DSYMBOLIZER='"$(abs_top_builddir)/src/allocwatch-symbolizer"'
tests_unit_check_symbol_server_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(ELF_CFLAGS)
tests_unit_check_symbol_server_LDADD = src/libsymbol.a src/libsymbolwire.a src/libbase.a $(DW_LIBS) $(ELF_LIBS) \
	$(IBERTY_LIBS) $(CHECK_LIBS)

symbolize_fixture = tests/unit/symbolize_fixture.c tests/unit/symbolize_fixture.h \
	tests/unit/symbol_fixture.c tests/unit/symbol_fixture.h
tests_unit_check_symbolize_SOURCES = tests/unit/check_symbolize.c $(symbolize_fixture)
tests_unit_check_symbolize_CPPFLAGS = $(AM_CPPFLAGS) \
	$(symbol_data) \
	-DSYMBOLIZER='"$(abs_top_builddir)/src/allocwatch-symbolizer"' \
	-DFAKE_SYMBOLIZER='"$(abs_top_builddir)/tests/unit/fake_symbolizer"'
tests_unit_check_symbolize_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(ELF_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_check_symbolize_LDADD = src/libsymbolize.a src/libsymbol.a src/libsymbolwire.a src/libmodel.a \
	src/libbase.a $(DW_LIBS) $(ELF_LIBS) $(IBERTY_LIBS) $(SYSTEMD_LIBS) $(CHECK_LIBS)

tests_unit_check_symbolize_debug_SOURCES = tests/unit/check_symbolize_debug.c $(symbolize_fixture)
tests_unit_check_symbolize_debug_CPPFLAGS = $(tests_unit_check_symbolize_CPPFLAGS)
tests_unit_check_symbolize_debug_CFLAGS = $(tests_unit_check_symbolize_CFLAGS)
tests_unit_check_symbolize_debug_LDADD = $(tests_unit_check_symbolize_LDADD)

tests_unit_check_names_file_SOURCES = tests/unit/check_names_file.c $(symbolize_fixture)
tests_unit_check_names_file_CPPFLAGS = $(tests_unit_check_symbolize_CPPFLAGS)
tests_unit_check_names_file_CFLAGS = $(tests_unit_check_symbolize_CFLAGS)
tests_unit_check_names_file_LDADD = $(tests_unit_check_symbolize_LDADD)

# Started by check_symbolize under the names of its ways to misbehave.
tests_unit_fake_symbolizer_SOURCES = tests/unit/fake_symbolizer.c
tests_unit_fake_symbolizer_LDADD = src/libsymbol.a src/libsymbolwire.a src/libbase.a
endif

EXTRA_DIST += \
	tests/unit/symbol_data/labels.S \
	tests/unit/symbol_data/levels.c \
	tests/unit/symbol_data/neighbours.c \
	tests/unit/symbol_data/neighbours.map \
	tests/unit/symbol_data/shapes.cc \
	tests/unit/symbol_data/sub/deepest.h \
	tests/unit/symbol_data/sub/middle.h
