"""Permissions as a feature: the gate in the loop, and what the user is asked about the sandbox."""
