systemdsystemunitdir = @systemdsystemunitdir@
dist_systemdsystemunit_DATA = systemd/allocwatchd.socket
nodist_systemdsystemunit_DATA = systemd/allocwatchd.service
EXTRA_DIST += systemd/allocwatchd.service.in
CLEANFILES += systemd/allocwatchd.service

systemd/allocwatchd.service: systemd/allocwatchd.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) systemd && \
	sed -e 's,@sbindir\@,$(sbindir),g' $(srcdir)/systemd/allocwatchd.service.in > $@.tmp && mv $@.tmp $@
