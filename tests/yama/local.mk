# Yama's modes, in a virtual machine with Debian's own kernel; needs root, and what contrib/packages.yama lists.
check_PROGRAMS += tests/yama/check_yama
tests_yama_check_yama_SOURCES = tests/yama/check_yama.c tests/yama/steps.c tests/yama/steps.h
tests_yama_check_yama_CFLAGS = $(live_cflags) -I$(srcdir)/tests/live
tests_yama_check_yama_LDADD = $(live_libs)
EXTRA_DIST += tests/yama/vm tests/yama/guest tests/yama/run tests/yama/with_cgroups

yama: $(check_PROGRAMS) all
	$(srcdir)/contrib/install-deps --yama
	$(srcdir)/tests/yama/run

# Snapshots before it is too late, in the same machine: its cgroups are of version 2, whatever those outside are.
cgroups: $(check_PROGRAMS) all
	$(srcdir)/contrib/install-deps --yama
	$(srcdir)/tests/yama/vm '$(abs_srcdir)/tests/yama/with_cgroups' tests/live/check_early
.PHONY: yama cgroups
