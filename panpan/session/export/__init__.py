"""A session as a file for people: Markdown, HTML or JSON."""
