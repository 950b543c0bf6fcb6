"""The log of a session: its file, its records, what they add up to, and its repair."""
