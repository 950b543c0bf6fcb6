"""Settings and where they come from, the places of files, vendors and models."""
