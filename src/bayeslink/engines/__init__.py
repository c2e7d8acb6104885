"""Engines: implementations of `PairSource`."""
