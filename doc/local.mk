dist_man_MANS += doc/allocwatch.1 doc/allocwatchd.8 doc/allocwatchd.conf.5 doc/allocwatch-python.7 doc/allocwatch-protocol.7
# Compares what is documented and completed with what the program has.
EXTRA_DIST += doc/check-man doc/ARCHITECTURE.md doc/HACKING.md doc/SAFETY.md
TESTS += doc/check-man
include doc/store.mk
