EXTRA_DIST += contrib/install-deps contrib/packages.build contrib/packages.test

# The daemon of the demo; the live tests watch it too.
check_PROGRAMS += contrib/sample/leaky
contrib_sample_leaky_SOURCES = contrib/sample/leaky.c
contrib_sample_leaky_CFLAGS = -std=gnu11 -g $(WARN_CFLAGS)
contrib_sample_leaky_LDFLAGS =

include contrib/completions.mk
