"""Trees of files: a folder kept as a git tree, two of them compared, one written back."""
