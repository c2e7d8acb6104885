"""The seam: comparison vectors, counted and listed."""
