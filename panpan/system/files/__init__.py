"""Files: paths, locks, atomic writes, protected places."""
