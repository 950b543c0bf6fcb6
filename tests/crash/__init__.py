"""panpan killed at every moment at which a disk or another process could tell the difference, and what comes after."""
