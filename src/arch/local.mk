# arch: see doc/ARCHITECTURE.md
