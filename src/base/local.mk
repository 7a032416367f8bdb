noinst_LIBRARIES += src/libbase.a
src_libbase_a_SOURCES = \
	src/base/cgroup.c src/base/cgroup.h \
	src/base/clock.h \
	src/base/fd.c src/base/fd.h \
	src/base/hash.c src/base/hash.h \
	src/base/mounts.c src/base/mounts.h \
	src/base/proc.c src/base/proc.h \
	src/base/reader.c src/base/reader.h \
	src/base/reason.c src/base/reason.h \
	src/base/retry.h \
	src/base/sanitized.h \
	src/base/strtab.c src/base/strtab.h \
	src/base/units.c src/base/units.h \
	src/base/user.c src/base/user.h \
	src/base/vec.c src/base/vec.h
