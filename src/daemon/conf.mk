# Configuration files, without the keys in them.
noinst_LIBRARIES += src/libconf.a
src_libconf_a_SOURCES = \
	src/daemon/conf_file.c src/daemon/conf_file.h \
	src/daemon/conf_folders.c src/daemon/conf_folders.h \
	src/daemon/places.c src/daemon/places.h
src_libconf_a_CPPFLAGS = $(AM_CPPFLAGS) -DVENDORCONFDIR='"$(prefix)/lib"'
