"""Trees of files: what lies in a folder kept as a git tree, two of them compared, and one written back."""
