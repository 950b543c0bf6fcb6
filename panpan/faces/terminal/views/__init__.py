"""Views of a session: the turn, its tools, the transcript and the status line."""
