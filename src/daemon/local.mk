# daemon: see doc/ARCHITECTURE.md
include src/daemon/conf.mk
include src/daemon/symbolize.mk

# Everything but main() is a library, so that a fuzz target links it.
noinst_LIBRARIES += src/libdaemon.a
src_libdaemon_a_SOURCES = \
	src/daemon/alarms.c src/daemon/alarms.h \
	src/daemon/allocators.c src/daemon/allocators.h \
	src/daemon/broker.c src/daemon/broker.h \
	src/daemon/call.c src/daemon/call.h \
	src/daemon/conn.c src/daemon/conn.h \
	src/daemon/daemon.c src/daemon/daemon.h \
	src/daemon/debuginfo.c src/daemon/debuginfo.h \
	src/daemon/debuginfo_fetch.c src/daemon/debuginfo_fetch.h \
	src/daemon/events.c src/daemon/events.h \
	src/daemon/events_queue.c src/daemon/events_queue.h \
	src/daemon/failures.c src/daemon/failures.h \
	src/daemon/healing.c src/daemon/healing.h \
	src/daemon/heartbeat.c src/daemon/heartbeat.h \
	src/daemon/intake.c src/daemon/intake.h \
	src/daemon/last_words.c src/daemon/last_words.h \
	src/daemon/limits.h \
	src/daemon/listen.c src/daemon/listen.h \
	src/daemon/log.c src/daemon/log.h \
	src/daemon/log_limit.c src/daemon/log_limit.h \
	src/daemon/lost.c src/daemon/lost.h \
	src/daemon/lost_files.c src/daemon/lost_files.h \
	src/daemon/memory_files.c src/daemon/memory_files.h \
	src/daemon/metrics.c src/daemon/metrics.h \
	src/daemon/metrics_address.c src/daemon/metrics_address.h \
	src/daemon/metrics_groups.c src/daemon/metrics_groups.h \
	src/daemon/metrics_http.h \
	src/daemon/metrics_serve.c src/daemon/metrics_serve.h \
	src/daemon/module_files.c src/daemon/module_files.h \
	src/daemon/names_keep.c src/daemon/names_keep.h \
	src/daemon/notify.c src/daemon/notify.h \
	src/daemon/options.c src/daemon/options.h \
	src/daemon/params.c src/daemon/params.h \
	src/daemon/peer.c src/daemon/peer.h \
	src/daemon/permit.c src/daemon/permit.h \
	src/daemon/process.c src/daemon/process.h \
	src/daemon/query.c src/daemon/query.h \
	src/daemon/reload.c src/daemon/reload.h \
	src/daemon/request_block.c \
	src/daemon/request_misuse.c \
	src/daemon/request_metrics.c \
	src/daemon/request_snapshot.c \
	src/daemon/request_statistics.c \
	src/daemon/request_status.c \
	src/daemon/request_trace.c \
	src/daemon/sampling.c src/daemon/sampling.h \
	src/daemon/request_subscribe.c \
	src/daemon/request_watch.c \
	src/daemon/requests.c src/daemon/requests.h \
	src/daemon/resolve.c src/daemon/resolve.h \
	src/daemon/server.c src/daemon/server.h \
	src/daemon/session.c src/daemon/session.h \
	src/daemon/session_ask.c src/daemon/session_hear.c src/daemon/session_private.h src/daemon/sessions.c \
	src/daemon/snapshots.c src/daemon/snapshots.h \
	src/daemon/snapshots_disk.c src/daemon/snapshots_find.c src/daemon/snapshots_private.h src/daemon/snapshots_room.c \
	src/daemon/settings.c src/daemon/settings.h \
	src/daemon/exec_start.c src/daemon/exec_start.h \
	src/daemon/shim_file.c src/daemon/shim_file.h \
	src/daemon/shim_plan.c src/daemon/shim_plan.h \
	src/daemon/shims.c src/daemon/shims.h \
	src/daemon/spool.c src/daemon/spool.h \
	src/daemon/standby.c src/daemon/standby.h \
	src/daemon/tracer.c src/daemon/tracer.h \
	src/daemon/tracer_process.c src/daemon/tracer_process.h \
	src/daemon/programs.c src/daemon/programs.h \
	src/daemon/units.c src/daemon/units.h \
	src/daemon/watched.c src/daemon/watches.c src/daemon/watches.h src/daemon/watches_private.h \
	src/daemon/watches_file.c src/daemon/watches_tell.c \
	src/daemon/work.c src/daemon/work.h
src_libdaemon_a_CFLAGS = $(AM_CFLAGS) $(SYSTEMD_CFLAGS) $(JANSSON_CFLAGS) $(MICROHTTPD_CFLAGS)
if HAVE_MICROHTTPD
src_libdaemon_a_SOURCES += src/daemon/metrics_http.c
else
src_libdaemon_a_SOURCES += src/daemon/metrics_no_http.c
endif

sbin_PROGRAMS += src/allocwatchd
src_allocwatchd_SOURCES = src/daemon/main.c
src_allocwatchd_CFLAGS = $(src_libdaemon_a_CFLAGS)
src_allocwatchd_LDADD = src/libdaemon.a $(DAEMON_LIBS)
DAEMON_LIBS = src/libconf.a src/libexport.a src/libsymbolize.a src/libsymbolwire.a src/libfetchwire.a src/libvarlink.a src/libstore.a \
	src/libwire.a src/libmodel.a src/libbase.a $(SYSTEMD_LIBS) $(JANSSON_LIBS) $(SQLITE_LIBS) $(MICROHTTPD_LIBS) -lm
