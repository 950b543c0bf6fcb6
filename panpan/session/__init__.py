"""The session: its log on disk, and what is built from it."""
