"""A finished linkage on disk, explained, compared and evaluated."""
