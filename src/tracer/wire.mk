# The messages between daemon and tracer: both sides link their check.
noinst_LIBRARIES += src/libwire.a
src_libwire_a_SOURCES = src/tracer/wire.c src/tracer/wire.h
