# unwind: see doc/ARCHITECTURE.md
