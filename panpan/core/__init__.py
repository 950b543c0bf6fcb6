"""The loop, the executor, and the points where services hook in."""
