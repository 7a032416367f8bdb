# arch: see doc/ARCHITECTURE.md
noinst_LIBRARIES += src/libarch.a
src_libarch_a_SOURCES = \
	src/arch/arch.h \
	src/arch/resident.h \
	src/arch/ring_code.h \
	src/arch/sigframe.h \
	src/arch/syscall.h \
	src/arch/x86_64.c \
	src/arch/x86_64_displace.c \
	src/arch/x86_64_function.c \
	src/arch/x86_64_handler.S \
	src/arch/x86_64_hands_on.c \
	src/arch/x86_64_insn.c src/arch/x86_64_insn.h \
	src/arch/x86_64_move.c \
	src/arch/x86_64_resident.c \
	src/arch/x86_64_ring_code.S \
	src/arch/x86_64_ring_settle.c \
	src/arch/x86_64_ring_site.c \
	src/arch/x86_64_room.c \
	src/arch/x86_64_scan.h \
	src/arch/x86_64_sigframe.c \
	src/arch/x86_64_spared.c \
	src/arch/x86_64_stub.c \
	src/arch/x86_64_switch.c src/arch/x86_64_switch.h \
	src/arch/x86_64_syscall.c \
	src/arch/x86_64_way_out.c
