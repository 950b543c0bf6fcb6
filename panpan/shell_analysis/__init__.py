"""What a command line would do, computed from its parsed text before it runs."""
