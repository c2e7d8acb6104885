"""Fields, and how two of their values compare."""
