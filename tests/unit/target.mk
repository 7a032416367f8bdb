if HAVE_CHECK
check_PROGRAMS += tests/unit/check_target
TESTS += tests/unit/check_target
tests_unit_check_target_SOURCES = tests/unit/check_target.c
tests_unit_check_target_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_target_LDADD = src/libtarget.a src/libarch.a src/libmodel.a src/libbase.a \
	$(ELF_LIBS) $(ZYDIS_LIBS) $(CHECK_LIBS)
check_PROGRAMS += tests/unit/check_holding
TESTS += tests/unit/check_holding
tests_unit_check_holding_SOURCES = tests/unit/check_holding.c
tests_unit_check_holding_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_holding_LDADD = src/libtarget.a src/libarch.a src/libmodel.a src/libbase.a \
	$(ELF_LIBS) $(ZYDIS_LIBS) $(CHECK_LIBS)
check_PROGRAMS += tests/unit/check_park tests/unit/check_starved
TESTS += tests/unit/check_park tests/unit/check_starved
tests_unit_check_starved_SOURCES = tests/unit/check_starved.c
tests_unit_check_starved_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_starved_LDADD = $(tests_unit_check_holding_LDADD)
check_PROGRAMS += tests/unit/check_order
TESTS += tests/unit/check_order
tests_unit_check_order_SOURCES = tests/unit/check_order.c
tests_unit_check_order_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_order_LDADD = src/libtarget.a src/libarch.a src/libmodel.a src/libbase.a \
	$(ELF_LIBS) $(ZYDIS_LIBS) $(CHECK_LIBS)
tests_unit_check_park_SOURCES = tests/unit/check_park.c
tests_unit_check_park_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_park_LDADD = src/libtarget.a src/libarch.a src/libmodel.a src/libbase.a \
	$(ELF_LIBS) $(ZYDIS_LIBS) $(CHECK_LIBS)
endif
