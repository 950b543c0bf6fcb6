"""Commands of `panpan sessions`."""
