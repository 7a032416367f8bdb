EXTRA_DIST += contrib/check contrib/count-tests contrib/cppcheck.suppressions contrib/demo contrib/fresh \
	contrib/install-deps contrib/packages.build contrib/packages.fresh contrib/packages.test contrib/packages.yama contrib/packages.bench contrib/packages.deb .ci/run

# The daemon of the demo; the live tests watch it too.
check_PROGRAMS += contrib/sample/leaky
contrib_sample_leaky_SOURCES = contrib/sample/leaky.c
contrib_sample_leaky_CFLAGS = -std=gnu11 -g $(WARN_CFLAGS)
contrib_sample_leaky_LDFLAGS =

# The two commands of the README in a minimal Debian 12; needs root and git.
fresh:
	$(srcdir)/contrib/fresh
.PHONY: fresh

include contrib/completions.mk

# The module for Python; its licence is another one.
dist_python_DATA = contrib/python/allocwatch.py
EXTRA_DIST += contrib/python/LICENSE

# Every key of allocwatchd's configuration, with its default.
examplesdir = $(docdir)/examples
dist_examples_DATA = contrib/examples/allocwatchd.conf

# The Debian package, in ./deb; DEB_BUILD_OPTIONS=nocheck leaves its tests out.
EXTRA_DIST += contrib/make-deb contrib/debian/allocwatch.docs contrib/debian/allocwatch.lintian-overrides contrib/debian/allocwatch.postrm contrib/debian/allocwatch.prerm contrib/debian/changelog \
	contrib/debian/control contrib/debian/copyright contrib/debian/rules contrib/debian/source/format
deb:
	$(srcdir)/contrib/make-deb deb
.PHONY: deb
