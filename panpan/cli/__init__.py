"""The command line; each command is imported only when it is called."""
