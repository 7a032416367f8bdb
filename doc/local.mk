dist_man_MANS += doc/allocwatch.1 doc/allocwatchd.8
include doc/store.mk
