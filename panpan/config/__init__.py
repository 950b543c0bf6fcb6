"""Settings and their sources, the locations of files, vendors and models.

Sources, weakest first: defaults, the user's file, the project's file (without keys that a project may not set, or may
set only once it is trusted), the answers kept for the project, `PANPAN_*`, `--settings` and `--set`, other options.
Lists of rules and folders are joined; any other value replaces the weaker one. An unknown key is an error with file and
line, an unknown variable a warning.

A project is trusted for its canonical root and the digests of the files that could configure panpan. They are read
once, and only the bytes from that time are used.
"""
