"""What panpan tells the model of the project: the place, git, the tree of files, and the rules written for agents."""
