"""The commands, one module for each kind of errand."""
