# daemon: see doc/ARCHITECTURE.md
include src/daemon/symbolize.mk
