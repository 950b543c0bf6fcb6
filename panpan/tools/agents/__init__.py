"""Other agents."""
