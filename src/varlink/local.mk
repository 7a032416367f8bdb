noinst_LIBRARIES += src/libvarlink.a
src_libvarlink_a_SOURCES = \
	src/varlink/bytes.c \
	src/varlink/client.c src/varlink/client.h \
	src/varlink/codec.c src/varlink/codec.h \
	src/varlink/codec_read.c \
	src/varlink/codec_rows.c src/varlink/codec_rows.h src/varlink/codec_rows_read.c \
	src/varlink/codec_write.c \
	src/varlink/domains.c src/varlink/domains.h \
	src/varlink/framing.c src/varlink/framing.h \
	src/varlink/interface.c src/varlink/interface.h \
	src/varlink/tables.h
nodist_src_libvarlink_a_SOURCES = src/varlink/description.inc
src_libvarlink_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)

# The interface description, as the daemon hands it out: one C string per line of the file.
EXTRA_DIST += src/varlink/org.allocwatch.Tracer.varlink
BUILT_SOURCES += src/varlink/description.inc
CLEANFILES += src/varlink/description.inc
src/varlink/description.inc: src/varlink/org.allocwatch.Tracer.varlink
	$(AM_V_GEN)$(MKDIR_P) src/varlink && \
	sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' \
		$(srcdir)/src/varlink/org.allocwatch.Tracer.varlink > $@.tmp && mv $@.tmp $@
src/varlink/src_libvarlink_a-interface.$(OBJEXT): src/varlink/description.inc
