"""What `panpan sessions` can do, a command a file."""
