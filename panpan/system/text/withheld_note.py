"""Why a command that failed misses a variable which the user has set: told from what it printed."""

import re
from collections.abc import Iterator, Mapping

from panpan.system.environment import FORCES_COLOUR, child_environment, is_named_like_secret, is_of_panpan

_MISSES = re.compile(
    r"unbound|undefined|unset|missing|required|KeyError|NotPresent|environ|env(?:ironment)? var"
    r"|not (?:be )?(?:set|defined|found|present|exist)|n't (?:set|defined|find|exist)|\bmust\b|\bplease\b",
    re.IGNORECASE,
)
"""Words with which programs say that a variable is not there."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def withheld_note(output: str, given: Mapping[str, str], own: Mapping[str, str]) -> str | None:
    """Return why a command that failed misses a variable which the user has set, as a sentence; None if it does not.

    Args:
        output: What it printed, or the end of it.
        given: The environment that it had.
        own: What panpan has of the user's variables.
    """
    withheld = own.keys() - given.keys() - child_environment(own).keys() - FORCES_COLOUR
    missed = dict.fromkeys(_missed(output, withheld))
    if not missed:
        return None
    first = next(iter(missed))
    if is_of_panpan(first):
        return f"{first} is set, but it is panpan's own and never passed on to commands"
    setting = f'environment.pass_env = ["{first}"] in his settings'
    if is_named_like_secret(first):
        return (
            f"{first} is set, but commands do not get it, since it is named like a secret; unless it is the key of a"
            f" model provider, the user can pass it on with {setting}"
        )
    return f"{first} is set, but it is not among the variables that commands get; the user can add it with {setting}"


def _missed(text: str, withheld: set[str]) -> Iterator[str]:
    for line in text.splitlines():
        if _MISSES.search(line):
            yield from (name for name in _NAME.findall(line) if len(name) > 1 and name in withheld)
