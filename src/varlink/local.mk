# varlink: see doc/ARCHITECTURE.md
