"""Places that programs write without naming them, and from which commands run later: `crontab x`, `systemctl enable`.

The rule: these are protected places (system/files/protected.py). What writes them by name is asked about in every mode;
so is what writes them by a program that is made for it.
"""

import re
from collections.abc import Mapping, Sequence

from panpan.permissions.reach.takings import name_of, operands, unwrapped_words
from panpan.shell_analysis.facts import SimpleCommand
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Writer:
    """How a program is told to have something run later."""

    place: str
    own_place: str = ""
    """What it writes for one user, where a flag says so."""
    forms: frozenset[str] = frozenset()
    """Its subcommands that do so; empty where it does whatever it is given."""
    looks: re.Pattern[str] = re.compile(r"(?!)")
    """Flags with which it only looks."""


_FOR_USER = frozenset({"--user"})
_WRITERS: Mapping[str, _Writer] = {
    "at": _Writer("/var/spool/cron/atjobs", looks=re.compile(r"-[lcV]|-q[a-zA-Z]?l")),
    "batch": _Writer("/var/spool/cron/atjobs"),
    "chkconfig": _Writer("/etc/systemd/system", forms=frozenset({"on", "--add"})),
    "crontab": _Writer("/var/spool/cron", looks=re.compile(r"-l|-V")),
    "launchctl": _Writer("~/Library/LaunchAgents", forms=frozenset({"bootstrap", "enable", "load", "submit"})),
    "systemctl": _Writer(
        "/etc/systemd/system",
        "~/.config/systemd/user",
        frozenset({"add-requires", "add-wants", "edit", "enable", "link", "preset", "preset-all", "reenable", "revert",
                   "set-default"}),
    ),
    "update-rc.d": _Writer("/etc/systemd/system"),
}  # fmt: skip


def autostart_places(command: SimpleCommand) -> Sequence[str]:
    """Return the places that a command writes without naming them, and from which commands are run later."""
    words = unwrapped_words(command.words)
    writer = _WRITERS.get(name_of(words))
    if writer is None:
        return ()
    texts = [word.text or word.source for word in words[1:]]
    if any(writer.looks.fullmatch(text) for text in texts):
        return ()
    if writer.forms and writer.forms.isdisjoint(texts) and all(word.text is not None for word in operands(words)):
        return ()
    is_own = bool(writer.own_place) and not _FOR_USER.isdisjoint(texts)
    return (writer.own_place if is_own else writer.place,)
