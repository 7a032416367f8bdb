# From (ELF file, address) to names.
noinst_LIBRARIES += src/libsymbol.a
src_libsymbol_a_CFLAGS = $(AM_CFLAGS) $(DW_CFLAGS) $(ELF_CFLAGS)
src_libsymbol_a_SOURCES = \
	src/symbol/debugfile.c src/symbol/debugfile.h \
	src/symbol/demangle.c src/symbol/demangle.h \
	src/symbol/elf_file.c src/symbol/elf_file.h \
	src/symbol/file_names.c src/symbol/file_names.h \
	src/symbol/intervals.c src/symbol/intervals.h \
	src/symbol/minidebug.c src/symbol/minidebug.h \
	src/symbol/path.c src/symbol/path.h \
	src/symbol/scopes.c src/symbol/scopes.h \
	src/symbol/symbol.c src/symbol/symbol.h \
	src/symbol/symtab.c src/symbol/symtab.h \
	src/symbol/units.c src/symbol/units.h
