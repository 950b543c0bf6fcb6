"""The loop, the executor, and the points where features hook in."""
