"""Parts that every shell subcommand needs: groups, failures, signals and standard output."""
