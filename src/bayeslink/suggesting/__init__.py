"""Two files looked at: what their columns hold, which belong together, which fields to compare."""
