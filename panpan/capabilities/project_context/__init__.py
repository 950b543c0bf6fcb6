"""The first word about a project: place, git, files, and rules for agents."""
