"""The environment of commands: the user's own without keys, and without anything that would ask or page.

The rule: every child process gets its environment from `child_environment`, so that no key reaches a command.
"""

import os
import re
from collections.abc import Mapping

from panpan.system.redact import looks_like_key

_SECRET_NAME = re.compile(
    r"KEY|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|_AUTH$|AUTH_CONFIG|(?:^|_)(?:PASS|PWD|PAT)$|COOKIE"
    r"|^(?:PANPAN|ANTHROPIC|OPENAI)_",
    re.IGNORECASE,
)
"""Names of secrets. SSH_AUTH_SOCK does not count: it holds no key, and without it `git push` could not work."""

_HARMLESS_NAMES = frozenset(
    {"PWD", "TOKENIZERS_PARALLELISM", "KEYTIMEOUT", "XDG_SESSION_COOKIE", "PANPAN_PROCESS_MARKS"}
)
"""Names that look like secrets and are none: shell, Hugging Face, session, and our own marks of process trees."""

_FORCES_COLOUR = frozenset({"FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "LINES"})

_QUIET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GH_PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "AWS_PAGER": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GH_PROMPT_DISABLED": "1",
    "PIP_NO_INPUT": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    # The default text is taken instead of waiting for an editor that nobody sees.
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    # What a Python program printed before it was ended is not lost in its buffer.
    "PYTHONUNBUFFERED": "1",
}
"""Nobody is there to answer, to scroll or to see colours."""


def child_environment(base: Mapping[str, str] | None = None, **extra: str) -> dict[str, str]:
    """Return the environment for a command.

    Variables whose name or value looks like a secret are left out. A key under a name that tells nothing (the
    `api_key_env` of a provider) is not known here; the session leaves it out of `base`.

    Args:
        base: What to start from; the process's own environment if not given.
        **extra: Variables to set on top, taken as they are.
    """
    start = os.environ if base is None else base
    kept = {name: value for name, value in start.items() if not _is_secret(name, value) and name not in _FORCES_COLOUR}
    return kept | _QUIET | extra


def _is_secret(name: str, value: str) -> bool:
    if name in _HARMLESS_NAMES:
        return False
    return _SECRET_NAME.search(name) is not None or looks_like_key(value)
