"""Words that set variables, and those that change nothing by it: how a command speaks, and through which pager.

The rule for these: name and value are both among those listed, and the value is one unquoted word.
"""

import re
from collections.abc import Mapping

_HARMLESS_VALUES: Mapping[str, str] = {
    r"LC_[A-Z]+|LANG": r"C|POSIX|C\.UTF-8|C\.utf8|en_US\.UTF-8",
    "PAGER|GIT_PAGER": "cat",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "COLUMNS": "[0-9]{1,4}",
    "GIT_OPTIONAL_LOCKS": "0",
}
"""For each name, the values that are harmless."""
_HARMLESS_NAME = re.compile("|".join(_HARMLESS_VALUES))
_HARMLESS = re.compile("|".join(f"(?:{name})=(?:{value})" for name, value in _HARMLESS_VALUES.items()))
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:\+?=|\[)")


def may_assign(source: str) -> bool:
    """Return whether a word before a command, as it stands in the line, may set a variable rather than be a program."""
    return _ASSIGNMENT.match(source) is not None


def is_harmless_assignment(source: str) -> bool:
    """Return whether a word before a command, as it stands in the line, is such an assignment."""
    return _HARMLESS.fullmatch(source) is not None


def is_harmless_name(name: str) -> bool:
    """True if such an assignment may set the variable of this name."""
    return _HARMLESS_NAME.fullmatch(name) is not None
