# ring: see doc/ARCHITECTURE.md
noinst_LIBRARIES += src/libring.a
src_libring_a_SOURCES = \
	src/ring/layout.h \
	src/ring/ring.c src/ring/ring.h src/ring/ring_private.h \
	src/ring/ring_eye.c src/ring/ring_eye.h \
	src/ring/ring_parse.c \
	src/ring/ring_sampling.c
