"""Bayesian record linkage after McVeigh & Murray."""

__version__ = "0.1.0"
