"""Keeps panpan's environment and memory, with the user's keys, from the commands that panpan starts.

The rule: the system gives an ordinary user no look into a process of theirs that is not dumpable: not into /proc, and
not as a debugger. What panpan starts is dumpable again with its `exec`.
"""

import sys
from collections.abc import Mapping

from panpan.system.processes.process_table import MARKS_VARIABLE

_SET_DUMPABLE = 4
"""PR_SET_DUMPABLE (prctl(2))."""


def hide_process(env: Mapping[str, str]) -> None:
    """Keep this process from the looks of others of the same user, where the system can; Linux can, but not from root.

    Args:
        env: The environment. A panpan that another one started stays visible, since that one has to end it.
    """
    if sys.platform == "linux" and MARKS_VARIABLE not in env:
        from panpan.system.sandbox.landlock_launcher import call  # not ctypes, which takes milliseconds to import

        call("prctl", _SET_DUMPABLE, 0, 0, 0, 0)
