"""The user's home, also where there is none.

The rule: everything that stands for `~` asks here, so that a user without a home, as in many containers, can work.
"""

from pathlib import Path

NO_HOME = Path("/nonexistent")
"""Stands for the home where there is none; systems keep this name free for that."""


def user_home() -> Path:
    """Return the user's home: `HOME`, else what the system knows of the user, else `NO_HOME`."""
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and a user id that the system does not know
        return NO_HOME
    return home if home.is_absolute() else NO_HOME
