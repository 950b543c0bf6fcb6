"""Success rates of a model on small tasks, judged by the state of the files: `make eval`."""
