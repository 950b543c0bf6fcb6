"""The command line: options, subcommands and exit codes. Each command is imported only when it is called."""
