"""The whole path in one call, and what it gives back."""
