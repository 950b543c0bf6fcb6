"""When Python looks for objects that nobody reaches any more: not while panpan starts.

A start makes many objects, and they stay. Looking through them again and again took a tenth of the time to the first
request; so nothing is looked through until the session is open, and what is there by then never is.
"""

import gc

_OBJECTS_OF_A_START = 1_000_000
"""More than any start makes, and few enough that a command without a session does not grow without bounds."""
_OBJECTS = 10_000
"""That are made between two looks; with Python's own 700 it would look while each reply arrives."""


def put_off_collection() -> None:
    """Collect nothing for the time being."""
    gc.set_threshold(_OBJECTS_OF_A_START)


def begin_collection() -> None:
    """Collect what is made from now on; calling it again changes nothing."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
    gc.set_threshold(_OBJECTS, 20, 10)
