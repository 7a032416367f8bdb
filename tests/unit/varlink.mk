if HAVE_CHECK
check_PROGRAMS += tests/unit/check_framing
TESTS += tests/unit/check_framing
tests_unit_check_framing_SOURCES = tests/unit/check_framing.c
tests_unit_check_framing_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_framing_LDADD = src/libvarlink.a src/libbase.a $(CHECK_LIBS) $(JANSSON_LIBS)

check_PROGRAMS += tests/unit/check_codec
TESTS += tests/unit/check_codec
tests_unit_check_codec_SOURCES = tests/unit/check_codec.c
tests_unit_check_codec_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_codec_LDADD = src/libvarlink.a src/libmodel.a src/libbase.a $(CHECK_LIBS) $(JANSSON_LIBS)
endif
