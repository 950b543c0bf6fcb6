"""The kit: files with which others check a reproduction without panpan."""
