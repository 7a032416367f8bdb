# symbol: see doc/ARCHITECTURE.md
