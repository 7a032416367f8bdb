systemdsystemunitdir = @systemdsystemunitdir@
dist_systemdsystemunit_DATA = systemd/allocwatchd.socket systemd/allocwatch-tracer.socket
nodist_systemdsystemunit_DATA = systemd/allocwatchd.service systemd/allocwatch-tracer@.service systemd/allocwatch@.service
EXTRA_DIST += systemd/allocwatchd.service.in systemd/allocwatch-tracer@.service.in systemd/allocwatch@.service.in
CLEANFILES += $(nodist_systemdsystemunit_DATA)

systemd_generate = $(AM_V_GEN)$(MKDIR_P) systemd && sed -e 's,@bindir\@,$(bindir),g' -e 's,@sbindir\@,$(sbindir),g' \
	-e 's,@pkglibexecdir\@,$(pkglibexecdir),g'

systemd/allocwatchd.service: systemd/allocwatchd.service.in Makefile
	$(systemd_generate) $(srcdir)/systemd/allocwatchd.service.in > $@.tmp && mv $@.tmp $@
systemd/allocwatch-tracer@.service: systemd/allocwatch-tracer@.service.in Makefile
	$(systemd_generate) $(srcdir)/systemd/allocwatch-tracer@.service.in > $@.tmp && mv $@.tmp $@

systemd/allocwatch@.service: systemd/allocwatch@.service.in Makefile
	$(systemd_generate) $(srcdir)/systemd/allocwatch@.service.in > $@.tmp && mv $@.tmp $@

# What systemd itself says of them.
TESTS += tests/systemd/check_units
# What is built, in a real systemd.
TESTS += tests/systemd/check_service
EXTRA_DIST += tests/systemd/check_units tests/systemd/boot tests/systemd/check_service tests/systemd/service_cases
