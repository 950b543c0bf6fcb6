"""Numbers of the descriptors that a box inherits."""

import fcntl

_FIRST = 10
"""Shells know those below by name, and a script may take one of them for something else."""


def inherited(fd: int) -> int:
    """Return another descriptor for what `fd` is one for, with a number that no shell on the way into the box uses.

    It is inherited by those programs alone to which it is passed on by this number.

    Raises:
        OSError: No more can be open.
    """
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST)
