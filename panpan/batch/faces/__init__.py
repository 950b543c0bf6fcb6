"""The commands of `panpan batch` for people: progress, status, answers, and attempts to look at."""
