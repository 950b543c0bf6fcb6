"""git: its commands, its index and its settings, read and run safely."""
