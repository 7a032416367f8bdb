# cli: see doc/ARCHITECTURE.md
# Everything but main() is a library, so that the unit tests link it.
noinst_LIBRARIES += src/libcli.a
src_libcli_a_SOURCES = \
	src/cli/answer.c src/cli/answer.h \
	src/cli/ask.c src/cli/ask.h \
	src/cli/canvas.c src/cli/canvas.h \
	src/cli/cmd_attach.c src/cli/cmd_block.c src/cli/cmd_clear.c src/cli/cmd_detach.c \
	src/cli/cmd_diff.c src/cli/cmd_dump.c src/cli/cmd_events.c src/cli/cmd_export.c src/cli/cmd_leaks.c src/cli/cmd_list.c src/cli/cmd_load.c src/cli/cmd_metrics.c src/cli/cmd_mismatches.c \
	src/cli/cmd_reset_peak.c src/cli/cmd_rm.c src/cli/cmd_run.c src/cli/cmd_snapshot.c \
	src/cli/cmd_snapshots.c src/cli/cmd_stats.c src/cli/cmd_status.c src/cli/cmd_top.c src/cli/cmd_trend.c \
	src/cli/cmd_watch.c \
	src/cli/command.h src/cli/commands.c \
	src/cli/failure.c src/cli/failure.h \
	src/cli/fetch.c src/cli/fetch.h \
	src/cli/frames.c src/cli/frames.h \
	src/cli/help.c src/cli/help.h \
	src/cli/launch.c src/cli/launch.h \
	src/cli/witness.c src/cli/witness.h \
	src/cli/list_file.h \
	src/cli/new_file.c src/cli/new_file.h \
	src/cli/options.c src/cli/options.h \
	src/cli/session.c src/cli/session.h \
	src/cli/show.c src/cli/show.h \
	src/cli/simple.c src/cli/simple.h \
	src/cli/snap.c src/cli/snap.h \
	src/cli/source.c src/cli/source.h \
	src/cli/spawn.c src/cli/spawn.h \
	src/cli/table.c src/cli/table.h \
	src/cli/terminal.c src/cli/terminal.h \
	src/cli/top_fetch.c src/cli/top_fetch.h \
	src/cli/top_filter.c src/cli/top_filter.h \
	src/cli/top_json.c src/cli/top_json.h \
	src/cli/top_keys.c \
	src/cli/top_layout.c src/cli/top_layout.h \
	src/cli/top_loop.c src/cli/top_loop.h \
	src/cli/top_model.c src/cli/top_model.h \
	src/cli/top_rows.c src/cli/top_rows.h \
	src/cli/top_screen.c src/cli/top_screen.h \
	src/cli/top_stacks.c src/cli/top_stacks.h \
	src/cli/tracing.c src/cli/tracing.h \
	src/cli/waiting.c src/cli/waiting.h
src_libcli_a_CPPFLAGS = $(AM_CPPFLAGS) -DSBINDIR='"$(sbindir)"'
src_libcli_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(CURSES_CFLAGS)

bin_PROGRAMS += src/allocwatch
src_allocwatch_SOURCES = src/cli/main.c
src_allocwatch_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_allocwatch_LDADD = src/libcli.a src/libexport.a src/libstore.a src/libvarlink.a src/libmodel.a \
	src/libbase.a $(JANSSON_LIBS) $(SQLITE_LIBS) $(CURSES_LIBS) -lm
