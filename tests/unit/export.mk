EXTRA_DIST += tests/oracle/tracemalloc_text.py
if HAVE_CHECK
check_PROGRAMS += tests/unit/check_text
TESTS += tests/unit/check_text
tests_unit_check_text_SOURCES = tests/unit/check_text.c
tests_unit_check_text_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_text_LDADD = src/libcli.a src/libexport.a src/libmodel.a src/libbase.a \
	$(CHECK_LIBS) $(JANSSON_LIBS) -lm
endif
