# cli: see doc/ARCHITECTURE.md
