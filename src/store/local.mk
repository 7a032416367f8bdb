# store: see doc/ARCHITECTURE.md
