"""Clerical review: a local page on which people judge the cases that are worth most."""
