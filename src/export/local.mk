# export: see doc/ARCHITECTURE.md
noinst_LIBRARIES += src/libexport.a
src_libexport_a_SOURCES = \
	src/export/text.c src/export/text.h \
	src/export/openmetrics.c src/export/openmetrics.h \
	src/export/printable.c src/export/printable.h \
	src/export/pickle.c src/export/pickle.h \
	src/export/tracemalloc.c src/export/tracemalloc.h
