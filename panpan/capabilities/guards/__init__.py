"""Guards of the loop: limits and repairs that every agent has."""
