"""Slash commands of the faces."""
