# The daemon's side of the symbolizer.  No ELF, no DWARF.
noinst_LIBRARIES += src/libsymbolize.a
src_libsymbolize_a_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS)
src_libsymbolize_a_SOURCES = \
	src/daemon/file_user.c src/daemon/file_user.h \
	src/daemon/generated.c src/daemon/generated.h \
	src/daemon/names_file.c src/daemon/names_file.h \
	src/daemon/symbolize.c src/daemon/symbolize.h src/daemon/symbolize_private.h \
	src/daemon/symbolize_answers.c src/daemon/symbolize_ask.c src/daemon/symbolize_wait.c src/daemon/symbolize_slow.c \
	src/daemon/symbolize_cache.c src/daemon/symbolize_cache.h \
	src/daemon/symbolize_files.c src/daemon/symbolize_files.h \
	src/daemon/symbolize_job.c src/daemon/symbolize_job.h \
	src/daemon/symbolize_queue.c src/daemon/symbolize_queue.h \
	src/daemon/symbolizer.c src/daemon/symbolizer.h
