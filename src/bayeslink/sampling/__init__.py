"""Chains, draws, and what follows from them."""
