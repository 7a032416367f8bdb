# target: see doc/ARCHITECTURE.md
