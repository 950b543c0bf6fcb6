"""Tools that list and search."""
