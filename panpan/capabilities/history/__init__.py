"""Tools for the session's own past."""
