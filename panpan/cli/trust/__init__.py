"""`panpan trust`, and the question whether a project's own settings are believed."""
