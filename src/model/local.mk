# model: see doc/ARCHITECTURE.md
