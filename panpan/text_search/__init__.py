"""Searching files and their text, with ripgrep or without, and showing what was found."""
