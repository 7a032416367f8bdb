if HAVE_CHECK
# A tracer without ptrace, for tests of the daemon alone.
check_PROGRAMS += tests/unit/fake_tracer
tests_unit_fake_tracer_SOURCES = tests/unit/fake_tracer.c
tests_unit_fake_tracer_LDADD = src/libwire.a src/libmodel.a src/libbase.a -lm

check_PROGRAMS += tests/unit/check_conf
TESTS += tests/unit/check_conf
tests_unit_check_conf_SOURCES = tests/unit/check_conf.c
tests_unit_check_conf_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_conf_LDADD = src/libconf.a src/libmodel.a src/libbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_shims
TESTS += tests/unit/check_shims
tests_unit_check_shims_SOURCES = tests/unit/check_shims.c
tests_unit_check_shims_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_check_shims_LDADD = src/libdaemon.a src/libbase.a $(CHECK_LIBS) $(SYSTEMD_LIBS)

check_PROGRAMS += tests/unit/check_memory_files
TESTS += tests/unit/check_memory_files
tests_unit_check_memory_files_SOURCES = tests/unit/check_memory_files.c
tests_unit_check_memory_files_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_memory_files_LDADD = src/libdaemon.a src/libmodel.a src/libbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_alarm_files
TESTS += tests/unit/check_alarm_files
tests_unit_check_alarm_files_SOURCES = tests/unit/check_alarm_files.c
tests_unit_check_alarm_files_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(SYSTEMD_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_alarm_files_LDADD = src/libdaemon.a $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_heartbeat
TESTS += tests/unit/check_heartbeat
tests_unit_check_heartbeat_SOURCES = tests/unit/check_heartbeat.c
tests_unit_check_heartbeat_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_heartbeat_LDADD = src/libdaemon.a $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_intake
TESTS += tests/unit/check_intake
tests_unit_check_intake_SOURCES = tests/unit/check_intake.c
tests_unit_check_intake_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(SYSTEMD_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_intake_LDADD = src/libdaemon.a $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_kept
TESTS += tests/unit/check_kept
tests_unit_check_kept_SOURCES = tests/unit/check_kept.c
tests_unit_check_kept_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(SYSTEMD_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_kept_LDADD = src/libdaemon.a $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_events_queue
TESTS += tests/unit/check_events_queue
tests_unit_check_events_queue_SOURCES = tests/unit/check_events_queue.c
tests_unit_check_events_queue_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_events_queue_LDADD = src/libdaemon.a $(DAEMON_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_services
TESTS += tests/unit/check_services
tests_unit_check_services_SOURCES = tests/unit/check_services.c
tests_unit_check_services_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(SYSTEMD_CFLAGS)
tests_unit_check_services_LDADD = src/libdaemon.a src/libbase.a $(CHECK_LIBS) $(SYSTEMD_LIBS)

DAEMON_TESTS = tests/unit/check_daemon_alarms tests/unit/check_daemon_clients tests/unit/check_daemon_config \
	tests/unit/check_daemon_life \
	tests/unit/check_daemon_limits tests/unit/check_daemon_metrics tests/unit/check_daemon_snapshots \
	tests/unit/check_daemon_subscribe tests/unit/check_daemon_tracers tests/unit/check_daemon_watches
check_PROGRAMS += $(DAEMON_TESTS)
TESTS += $(DAEMON_TESTS)

check_LIBRARIES += tests/unit/libdaemonfixture.a
tests_unit_libdaemonfixture_a_SOURCES = tests/unit/daemon_fixture.c tests/unit/daemon_fixture.h \
	tests/unit/daemon_helpers.c
tests_unit_libdaemonfixture_a_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
DAEMON_TEST_LIBS = tests/unit/libdaemonfixture.a src/libvarlink.a src/libmodel.a src/libbase.a \
	$(CHECK_LIBS) $(JANSSON_LIBS)
tests_unit_check_daemon_alarms_SOURCES = tests/unit/check_daemon_alarms.c
tests_unit_check_daemon_alarms_LDADD = $(DAEMON_TEST_LIBS)
tests_unit_check_daemon_clients_SOURCES = tests/unit/check_daemon_clients.c
tests_unit_check_daemon_clients_LDADD = $(DAEMON_TEST_LIBS)
tests_unit_check_daemon_config_SOURCES = tests/unit/check_daemon_config.c
tests_unit_check_daemon_config_LDADD = $(DAEMON_TEST_LIBS)
tests_unit_check_daemon_life_SOURCES = tests/unit/check_daemon_life.c
tests_unit_check_daemon_life_LDADD = $(DAEMON_TEST_LIBS)
tests_unit_check_daemon_limits_SOURCES = tests/unit/check_daemon_limits.c
tests_unit_check_daemon_limits_LDADD = $(DAEMON_TEST_LIBS)
tests_unit_check_daemon_metrics_SOURCES = tests/unit/check_daemon_metrics.c
tests_unit_check_daemon_metrics_LDADD = $(DAEMON_TEST_LIBS)
if HAVE_MICROHTTPD
tests_unit_check_daemon_metrics_CPPFLAGS = $(AM_CPPFLAGS) -DWITH_HTTP=1
endif
tests_unit_check_daemon_snapshots_SOURCES = tests/unit/check_daemon_snapshots.c
tests_unit_check_daemon_snapshots_LDADD = $(DAEMON_TEST_LIBS)
tests_unit_check_daemon_subscribe_SOURCES = tests/unit/check_daemon_subscribe.c
tests_unit_check_daemon_subscribe_LDADD = $(DAEMON_TEST_LIBS)
tests_unit_check_daemon_tracers_SOURCES = tests/unit/check_daemon_tracers.c
tests_unit_check_daemon_tracers_LDADD = $(DAEMON_TEST_LIBS)
tests_unit_check_daemon_watches_SOURCES = tests/unit/check_daemon_watches.c
tests_unit_check_daemon_watches_LDADD = $(DAEMON_TEST_LIBS)
endif
