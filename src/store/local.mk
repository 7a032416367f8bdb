# store: see doc/ARCHITECTURE.md
noinst_LIBRARIES += src/libstore.a
src_libstore_a_SOURCES = \
	src/store/checksum.c src/store/checksum.h \
	src/store/db.c src/store/db.h \
	src/store/history.c src/store/history.h \
	src/store/intern.c src/store/intern.h \
	src/store/load.c src/store/load.h \
	src/store/row.c src/store/row.h \
	src/store/schema.c src/store/schema.h \
	src/store/store.c src/store/store.h \
	src/store/tables.c src/store/tables.h \
	src/store/write.c src/store/write.h
src_libstore_a_CFLAGS = $(AM_CFLAGS) $(SQLITE_CFLAGS)
