systemdsystemunitdir = @systemdsystemunitdir@
dist_systemdsystemunit_DATA = systemd/allocwatchd.socket systemd/allocwatch-tracer.socket \
	systemd/allocwatch-fetcher.socket
nodist_systemdsystemunit_DATA = systemd/allocwatchd.service systemd/allocwatch-tracer@.service systemd/allocwatch@.service \
	systemd/allocwatch-fetcher@.service
EXTRA_DIST += systemd/allocwatchd.service.in systemd/allocwatch-tracer@.service.in systemd/allocwatch@.service.in \
	systemd/allocwatch-fetcher@.service.in
CLEANFILES += $(nodist_systemdsystemunit_DATA)

systemd_generate = $(AM_V_GEN)$(MKDIR_P) systemd && sed -e 's,@bindir\@,$(bindir),g' -e 's,@sbindir\@,$(sbindir),g' \
	-e 's,@pkglibexecdir\@,$(pkglibexecdir),g'

systemd/allocwatchd.service: systemd/allocwatchd.service.in Makefile
	$(systemd_generate) $(srcdir)/systemd/allocwatchd.service.in > $@.tmp && mv $@.tmp $@
systemd/allocwatch-tracer@.service: systemd/allocwatch-tracer@.service.in Makefile
	$(systemd_generate) $(srcdir)/systemd/allocwatch-tracer@.service.in > $@.tmp && mv $@.tmp $@
systemd/allocwatch-fetcher@.service: systemd/allocwatch-fetcher@.service.in Makefile
	$(systemd_generate) $(srcdir)/systemd/allocwatch-fetcher@.service.in > $@.tmp && mv $@.tmp $@

systemd/allocwatch@.service: systemd/allocwatch@.service.in Makefile
	$(systemd_generate) $(srcdir)/systemd/allocwatch@.service.in > $@.tmp && mv $@.tmp $@

# The group, and the folders, where systemd-sysusers and systemd-tmpfiles look for them.
EXTRA_DIST += systemd/sysusers.conf systemd/tmpfiles.conf
install-data-hook: install-systemd-conf
install-systemd-conf:
	$(MKDIR_P) '$(DESTDIR)$(prefix)/lib/sysusers.d' '$(DESTDIR)$(prefix)/lib/tmpfiles.d'
	$(INSTALL_DATA) $(srcdir)/systemd/sysusers.conf '$(DESTDIR)$(prefix)/lib/sysusers.d/allocwatch.conf'
	$(INSTALL_DATA) $(srcdir)/systemd/tmpfiles.conf '$(DESTDIR)$(prefix)/lib/tmpfiles.d/allocwatch.conf'
uninstall-hook: uninstall-systemd-conf
uninstall-systemd-conf:
	rm -f '$(DESTDIR)$(prefix)/lib/sysusers.d/allocwatch.conf' '$(DESTDIR)$(prefix)/lib/tmpfiles.d/allocwatch.conf'
.PHONY: install-systemd-conf uninstall-systemd-conf

dist_pkglibexec_SCRIPTS = systemd/allocwatch-unshim

# What systemd itself says of them.
TESTS += tests/systemd/check_units
# What is built, in a real systemd.
TESTS += tests/systemd/check_service
EXTRA_DIST += tests/systemd/check_units tests/systemd/boot tests/systemd/check_service tests/systemd/service_cases \
	tests/systemd/package

# "watch --from-start", in a real systemd; the service's heap is what it says it is, as those of other victims.
TESTS += tests/systemd/check_from_start
check_PROGRAMS += tests/systemd/starter
tests_systemd_starter_SOURCES = tests/systemd/starter.c
tests_systemd_starter_CFLAGS = $(victim_cflags)
tests_systemd_starter_LDFLAGS = $(victim_ldflags)
EXTRA_DIST += tests/systemd/check_from_start tests/systemd/from_start_cases

# A service that the OOM killer ends, in a real systemd; tests/victims has it.
TESTS += tests/systemd/check_oom
EXTRA_DIST += tests/systemd/check_oom tests/systemd/oom_cases

# The same with the Debian package, which is built, checked, installed, upgraded and purged.
systemd-test:
	srcdir=$(srcdir) $(srcdir)/tests/systemd/package
.PHONY: systemd-test
