"""Texts of strangers: keys, control characters, marks of withheld parts."""
