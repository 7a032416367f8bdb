# The tracer process.  No symbols, no clients: what it links shows it.
pkglibexec_PROGRAMS += src/allocwatch-tracer
src_allocwatch_tracer_CFLAGS = $(AM_CFLAGS) -pthread
src_allocwatch_tracer_SOURCES = \
	src/tracer/attach.c src/tracer/detach.c \
	src/tracer/guard.c src/tracer/guard.h \
	src/tracer/explain.c src/tracer/explain.h \
	src/tracer/follow.c src/tracer/follow.h \
	src/tracer/foreign.c src/tracer/foreign.h \
	src/tracer/heal.c src/tracer/heal.h \
	src/tracer/hold.c src/tracer/hold.h \
	src/tracer/link.c src/tracer/link.h \
	src/tracer/loop.c src/tracer/loop.h src/tracer/loop_private.h \
	src/tracer/loop_ask.c src/tracer/loop_catch_up.c src/tracer/loop_requests.c src/tracer/loop_serve.c \
	src/tracer/main.c \
	src/tracer/opening.c src/tracer/opening.h \
	src/tracer/others.c src/tracer/others.h \
	src/tracer/placement.c src/tracer/placement.h \
	src/tracer/privileges.c src/tracer/privileges.h \
	src/tracer/recall.c src/tracer/recall.h \
	src/tracer/refuge.c src/tracer/refuge.h \
	src/tracer/release.c src/tracer/release_hold.c src/tracer/release_exec.c src/tracer/release_settle.c src/tracer/release.h \
	src/tracer/session.c src/tracer/session.h \
	src/tracer/session_misuses.c src/tracer/session_modules.c src/tracer/session_sink.c src/tracer/session_status.c \
	src/tracer/session_verify.c \
	src/tracer/snapshot.c src/tracer/snapshot.h
src_allocwatch_tracer_LDADD = \
	src/libprobe.a src/libring.a src/libtarget.a src/libaw_unwind.a src/libarch.a src/libwire.a src/libmodel.a src/libbase.a \
	$(DW_LIBS) $(ELF_LIBS) $(UNWIND_LIBS) $(ZYDIS_LIBS) -lm
