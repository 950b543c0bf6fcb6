"""What is said of the process that holds a session, without keys from its command line."""

import re
from datetime import datetime

from panpan.system.files.file_lock import LockHolder
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import clean_line

MAX_COMMAND_CHARS = 80

_KEY_OPTION = re.compile(r"(--api-key[ =])\S+")


def in_brackets(holder: LockHolder | None) -> str:
    """Return who it is, such as ` (process 7, running since 2026-11-22 09:00: panpan -c)`; empty where nobody knows."""
    if holder is None:
        return ""
    since = ""
    if holder.started_at is not None:
        since = f", running since {datetime.fromtimestamp(holder.started_at).strftime('%Y-%m-%d %H:%M')}"
    command = Redactor().redact(_KEY_OPTION.sub(r"\1[redacted]", clean_line(holder.command)))
    shown = command if len(command) <= MAX_COMMAND_CHARS else f"{command[: MAX_COMMAND_CHARS - 1]}…"
    return f" (process {holder.pid}{since}{f': {shown}' if shown else ''})"
