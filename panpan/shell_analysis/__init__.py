"""Effects of a command line, computed from its text before it runs."""
