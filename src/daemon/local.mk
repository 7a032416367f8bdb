# daemon: see doc/ARCHITECTURE.md
