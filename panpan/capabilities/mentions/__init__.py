"""Files that the user mentions with an `@`."""
