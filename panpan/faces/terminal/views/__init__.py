"""Views of what a session does: the turn, the tools, the todos, the status line."""
