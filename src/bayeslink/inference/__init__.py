"""The paper's statistics, and what goes past it."""
