# export: see doc/ARCHITECTURE.md
noinst_LIBRARIES += src/libexport.a
src_libexport_a_SOURCES = \
	src/export/text.c src/export/text.h \
	src/export/utf8.c src/export/utf8.h
