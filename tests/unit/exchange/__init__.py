"""Other tools."""
