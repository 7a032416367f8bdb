# Debug information from servers, and the process that asks them for the daemon.
noinst_LIBRARIES += src/libfetchwire.a
src_libfetchwire_a_SOURCES = src/fetch/wire.c src/fetch/wire.h

pkglibexec_PROGRAMS += src/allocwatch-fetcher
src_allocwatch_fetcher_SOURCES = src/fetch/main.c src/fetch/fetch.h
src_allocwatch_fetcher_CFLAGS = $(AM_CFLAGS) $(DEBUGINFOD_CFLAGS)
src_allocwatch_fetcher_LDADD = src/libfetchwire.a src/libbase.a $(DEBUGINFOD_LIBS)
if HAVE_DEBUGINFOD
src_allocwatch_fetcher_SOURCES += src/fetch/fetch.c src/fetch/folder.c src/fetch/folder.h
else
src_allocwatch_fetcher_SOURCES += src/fetch/fetch_none.c
endif
