# shim: see doc/ARCHITECTURE.md.  No library, and none of the flags that need one.
pkglibexec_PROGRAMS += src/allocwatch-shim
src_allocwatch_shim_SOURCES = src/shim/shim.c src/shim/shim.h src/shim/start_x86_64.S
src_allocwatch_shim_CFLAGS = -std=gnu11 $(WARN_CFLAGS) -ffreestanding -fno-stack-protector -fno-pie
src_allocwatch_shim_LDFLAGS = -nostdlib -static
