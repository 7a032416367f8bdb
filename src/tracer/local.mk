# tracer: see doc/ARCHITECTURE.md
