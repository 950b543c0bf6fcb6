"""The user's own browser, which shows a page and has nothing to do with panpan's terminal."""

import subprocess
import sys
import webbrowser
from pathlib import Path
from threading import Thread

from panpan.system.environment import user_environment

_TEXT_BROWSERS = frozenset({"www-browser", "links", "elinks", "lynx", "w3m"})
"""Browsers that need a terminal, which they do not get here."""


def show_in_browser(address: str) -> bool:
    """Show a page in the user's browser, in a process that shares neither the terminal nor the end of panpan's.

    Returns:
        False if there is no browser that has a window of its own.
    """
    try:
        name = getattr(webbrowser.get(), "name", "")
    except webbrowser.Error:
        return False
    if Path(name).name in _TEXT_BROWSERS:
        return False
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", "webbrowser", address],  # -I: else modules of the folder count
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=user_environment(),
        )
    except OSError:
        return False
    Thread(target=process.wait, daemon=True, name="panpan-browser").start()  # so that the system can forget it
    return True
