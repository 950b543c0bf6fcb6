"""Packages that panpan can use and that are not installed: how the user gets them."""

import shlex
import sys
from importlib.util import find_spec


def how_to_install(*requirements: str) -> str:
    """Return the command that installs packages into the environment that panpan itself runs in.

    It names that environment's Python, since the `pip` of the user's shell is often another one's; and the packages
    themselves, since panpan is on no package index: whoever registered its name there would be installed.

    Args:
        requirements: Packages with their bounds, as in pyproject.toml.
    """
    pip = [sys.executable, "-m", "pip", "install"]
    uv = ["uv", "pip", "install", "--python", sys.executable]  # made by uv, an environment has no pip
    return shlex.join([*(pip if find_spec("pip") is not None else uv), *requirements])
