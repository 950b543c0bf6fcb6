"""Parts of every shell subcommand: groups, options, failures, signals, standard output."""
