"""How often a model does small tasks right, judged by the state of the files: `make eval`."""
