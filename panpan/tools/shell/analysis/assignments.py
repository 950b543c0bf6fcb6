"""Words that set variables, and those that change nothing by it: how a command speaks, and through which pager.

The rule for these: name and value are both among those listed, and the value is one unquoted word.
"""

import re

_HARMLESS = re.compile(
    r"(?:LC_[A-Z]+|LANG)=(?:C|POSIX|C\.UTF-8|C\.utf8|en_US\.UTF-8)"
    r"|(?:GIT_PAGER|PAGER)=cat|NO_COLOR=1|TERM=dumb|COLUMNS=[0-9]{1,4}|GIT_OPTIONAL_LOCKS=0"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:\+?=|\[)")


def may_assign(source: str) -> bool:
    """Return whether a word before a command, as it stands in the line, may set a variable rather than be a program."""
    return _ASSIGNMENT.match(source) is not None


def is_harmless_assignment(source: str) -> bool:
    """Return whether a word before a command, as it stands in the line, is such an assignment."""
    return _HARMLESS.fullmatch(source) is not None
