# The tracer with faults: its own objects, and the calls that it makes go through shim.c.
faulty_calls = \
	-Wl,--wrap=ptrace -Wl,--wrap=waitid -Wl,--wrap=process_vm_readv -Wl,--wrap=pread -Wl,--wrap=pwrite \
	-Wl,--wrap=mmap -Wl,--wrap=syscall -Wl,--wrap=open -Wl,--wrap=opendir -Wl,--wrap=readdir -Wl,--wrap=readlink \
	-Wl,--wrap=stat -Wl,--wrap=fstat -Wl,--wrap=read -Wl,--wrap=write -Wl,--wrap=fcntl -Wl,--wrap=memfd_create \
	-Wl,--wrap=pipe2 -Wl,--wrap=sendmsg -Wl,--wrap=recvmsg -Wl,--wrap=socketpair -Wl,--wrap=eventfd \
	-Wl,--wrap=signalfd -Wl,--wrap=fork -Wl,--wrap=pthread_create -Wl,--wrap=prctl -Wl,--wrap=setresuid \
	-Wl,--wrap=setresgid -Wl,--wrap=setgroups -Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc \
	-Wl,--wrap=strdup -Wl,--wrap=elf_begin -Wl,--wrap=elf_getdata -Wl,--wrap=elf_memory \
	-Wl,--wrap=dwarf_getcfi_elf -Wl,--wrap=dwarf_cfi_addrframe -Wl,--wrap=_Ux86_64_step

check_PROGRAMS += tests/faults/tracer
tests_faults_tracer_SOURCES = tests/faults/shim.c tests/faults/faults.h
tests_faults_tracer_CFLAGS = $(AM_CFLAGS) -fno-builtin $(DW_CFLAGS) $(ELF_CFLAGS) -pthread
tests_faults_tracer_LDFLAGS = $(AM_LDFLAGS) -pthread $(faulty_calls)
tests_faults_tracer_LDADD = $(src_allocwatch_tracer_OBJECTS) $(src_allocwatch_tracer_LDADD)

check_PROGRAMS += tests/live/check_faults
TESTS += tests/live/check_faults
tests_live_check_faults_SOURCES = tests/live/check_faults.c
tests_live_check_faults_CFLAGS = $(live_cflags) -I$(srcdir)/tests/faults
tests_live_check_faults_LDADD = $(live_libs)

# Each point, not a spread of them.
faults: $(check_PROGRAMS) $(check_DATA) all
	$(srcdir)/tests/live/torture tests/live/check_faults
.PHONY: faults
