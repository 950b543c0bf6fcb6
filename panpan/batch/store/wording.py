"""Names, money and times as the campaign's commands and reports write them. Light, since `status` is quick."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from panpan.system.text.terminal_text import clean_line, spoken_s

_MAX_MESSAGE_CHARS = 300
_HEAD_CHARS = 100

STARTS = "it starts"
"""Problem of a machine that is not ready yet, and nothing to worry about."""

Money = float | None
"""US dollars; None if a price is not known."""


def value_text(value: object) -> str:
    """Return the value of an axis as users write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def task_label(name: str, axes: Mapping[str, object]) -> str:
    """Return the name of a task as it is typed and shown, such as `table-1/seed=3`."""
    return "/".join([name, *(f"{axis}={value_text(value)}" for axis, value in axes.items())])


def attempt_label(name: str, axes: Mapping[str, object], attempt: int) -> str:
    """Return the name of an attempt, such as `table-1/seed=3/2`."""
    return f"{task_label(name, axes)}/{attempt}"


def typed(label: str, task_id: str, attempt: int) -> str:
    """Return a word for a command line that names an attempt: its label if that can be typed, else the digest."""
    word = label if label.isprintable() and label == clean_line(label) else f"{task_id}/{attempt}"
    return shlex.quote(word)


def batch_command(name: str, folder: Path, word: str = "") -> str:
    """Return a command of `panpan batch` to type.

    Args:
        name: The command, such as `run`.
        folder: The campaign's folder.
        word: Name of an attempt, as from `typed`, or a flag.
    """
    return " ".join(filter(None, ("panpan batch", name, shlex.quote(clean_line(str(folder))), word)))


def money(usd: Money) -> str:
    """Return US dollars with as many places as they need."""
    if usd is None:
        return "an unknown sum"
    return f"${usd:,.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.4f}"


def count(number: float) -> str:
    """Return a large number in short, such as `1.2 M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:,.0f}"


def duration(seconds: float) -> str:
    """Return a time as `12 s`, `3 min 20 s`, `2 h 5 min` or `3 d 2 h`."""
    if seconds < 172_800:
        return spoken_s(seconds)
    return f"{seconds // 86_400:.0f} d {seconds % 86_400 // 3_600:.0f} h"


def percent(share: float) -> str:
    """Return a share of 0 to 1 in percent."""
    return f"{100 * share:.0f} %"


def shortened(text: str) -> str:
    """Return a text on one line, cut in the middle if it is long: the cause of an error often comes last."""
    line = clean_line(text)
    if len(line) <= _MAX_MESSAGE_CHARS:
        return line
    return f"{line[:_HEAD_CHARS]} … {line[-(_MAX_MESSAGE_CHARS - _HEAD_CHARS) :]}"
