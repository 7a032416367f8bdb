# From (ELF file, address) to names, and the unprivileged process that does it for the daemon.
noinst_LIBRARIES += src/libsymbol.a src/libsymbolwire.a
src_libsymbol_a_CFLAGS = $(AM_CFLAGS) $(DW_CFLAGS) $(ELF_CFLAGS)
src_libsymbol_a_SOURCES = \
	src/symbol/answers.c src/symbol/answers.h \
	src/symbol/confine.c src/symbol/confine.h \
	src/symbol/debugfile.c src/symbol/debugfile.h \
	src/symbol/demangle.c src/symbol/demangle.h \
	src/symbol/dwp.c src/symbol/dwp.h \
	src/symbol/elf_file.c src/symbol/elf_file.h \
	src/symbol/file_names.c src/symbol/file_names.h \
	src/symbol/intervals.c src/symbol/intervals.h \
	src/symbol/jit_names.c src/symbol/jit_names.h \
	src/symbol/jit_table.c src/symbol/jit_table.h \
	src/symbol/jitdump.c src/symbol/jitdump.h \
	src/symbol/minidebug.c src/symbol/minidebug.h \
	src/symbol/opener.c src/symbol/opener.h \
	src/symbol/path.c src/symbol/path.h \
	src/symbol/perf_map.c src/symbol/perf_map.h \
	src/symbol/scopes.c src/symbol/scopes.h \
	src/symbol/server.c src/symbol/server.h \
	src/symbol/split.c src/symbol/split.h \
	src/symbol/symbol.c src/symbol/symbol.h \
	src/symbol/symtab.c src/symbol/symtab.h \
	src/symbol/units.c src/symbol/units.h

# The messages alone, for the daemon, which links no ELF or DWARF library.
src_libsymbolwire_a_SOURCES = src/symbol/wire.c src/symbol/wire.h

pkglibexec_PROGRAMS += src/allocwatch-symbolizer
src_allocwatch_symbolizer_SOURCES = src/symbol/main.c
src_allocwatch_symbolizer_LDADD = src/libsymbol.a src/libsymbolwire.a src/libbase.a \
	$(DW_LIBS) $(ELF_LIBS) $(IBERTY_LIBS)
