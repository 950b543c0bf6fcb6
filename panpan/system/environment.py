"""The environment of commands: what programs need of the user's own, and nothing that would ask or page.

The rule: every child process gets its environment from here, so that no key reaches a command. What the model, panpan
or a repository starts gets the variables that are listed (`child_environment`); what the user typed or set up himself
gets all but keys (`user_environment`).
"""

import os
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from panpan.system.passed_variables import passed_names
from panpan.system.text.redact import holds_login, looks_like_key

_SECRET_NAME = re.compile(
    r"KEY|SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|_AUTH$|AUTH_CONFIG|(?:^|_)(?:PASS|PWD|PAT)$|COOKIE|JWT"
    r"|^(?:PANPAN|ANTHROPIC|OPENAI)_",
    re.IGNORECASE,
)
"""Names of secrets. SSH_AUTH_SOCK does not count: it holds no key, and without it `git push` could not work."""

_HARMLESS_NAMES = frozenset({"PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "KEYTIMEOUT", "PANPAN_PROCESS_MARKS"})
"""Names that look like secrets and are none: shell, Hugging Face, and our own marks of process trees."""

_OF_PANPAN = re.compile(r"(?:PANPAN|ANTHROPIC|OPENAI)_", re.IGNORECASE)
"""What no setting passes on."""

FORCES_COLOUR = frozenset({"FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS", "LINES"})
"""Variables that would bring colours or widths of a terminal into what commands print."""

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


def child_environment(base: Mapping[str, str] | None = None, *, pass_env: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment for what the model, panpan or a repository starts: variables that are known to be needed.

    A key under a name that tells nothing (the `api_key_env` of a provider) is not known here; the session leaves it out
    of `base`.

    Args:
        base: What to start from; the process's own environment if not given.
        pass_env: Names that the user wants to be passed, too. One with wildcards (`WANDB_*`) passes nothing that is
            named or looks like a secret; a whole name does, for he has named it.
    """
    start = os.environ if base is None else base
    whole, beginnings = passed_names()
    named = _named(pass_env)
    patterns = [pattern for pattern in pass_env if _has_wildcard(pattern)]
    kept = {
        name: value
        for name, value in start.items()
        if name in named
        or (
            (name in whole or name.startswith(beginnings) or any(fnmatchcase(name, one) for one in patterns))
            and not _is_secret(name, value)
        )
    }
    return _quiet(kept)


def user_environment(base: Mapping[str, str] | None = None, *, pass_env: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment for a command that the user has typed or set up: all but what looks like a secret.

    Args:
        base: What to start from; the process's own environment if not given.
        pass_env: Names that the user wants to be passed, too; as for `child_environment`.
    """
    start = os.environ if base is None else base
    named = _named(pass_env)
    return _quiet({name: value for name, value in start.items() if name in named or not _is_secret(name, value)})


def is_of_panpan(name: str) -> bool:
    """Return whether a variable is panpan's own or of the SDKs, and never passed on to commands."""
    return _OF_PANPAN.match(name) is not None


def is_named_like_secret(name: str) -> bool:
    """Return whether a variable is named as secrets are."""
    return _SECRET_NAME.search(name) is not None


def _quiet(kept: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in kept.items() if name not in FORCES_COLOUR} | _QUIET


def _named(pass_env: Sequence[str]) -> set[str]:
    """Return the whole names that are passed although they are named like secrets, for the user has named them."""
    return {pattern for pattern in pass_env if not _has_wildcard(pattern) and not is_of_panpan(pattern)}


def _has_wildcard(name: str) -> bool:
    return any(character in name for character in "*?[")


def _is_secret(name: str, value: str) -> bool:
    is_named_so = name not in _HARMLESS_NAMES and is_named_like_secret(name)
    return is_named_so or looks_like_key(value) or holds_login(value)
