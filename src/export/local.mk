# export: see doc/ARCHITECTURE.md
