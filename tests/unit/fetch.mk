if HAVE_CHECK
if HAVE_DEBUGINFOD
check_PROGRAMS += tests/unit/check_fetch
TESTS += tests/unit/check_fetch
tests_unit_check_fetch_SOURCES = tests/unit/check_fetch.c tests/unit/debug_server.c tests/unit/debug_server.h \
	tests/unit/symbol_fixture.c tests/unit/symbol_fixture.h
tests_unit_check_fetch_CPPFLAGS = $(AM_CPPFLAGS) $(symbol_data) -DFETCHER='"$(abs_top_builddir)/src/allocwatch-fetcher"'
tests_unit_check_fetch_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(ELF_CFLAGS)
tests_unit_check_fetch_LDADD = src/libfetchwire.a src/libsymbol.a src/libbase.a $(DW_LIBS) $(ELF_LIBS) $(IBERTY_LIBS) \
	$(CHECK_LIBS)
endif
endif
