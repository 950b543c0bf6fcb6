"""The environment of commands: what programs need of the user's own, and nothing that would ask or page.

The rule: every child process gets its environment from here, so that no key reaches a command. What the model, panpan
or a repository starts gets the variables that are listed (`child_environment`); what the user typed or set up himself
gets all but keys (`user_environment`).
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from panpan.system.passed_variables import passed_names
from panpan.system.redact import holds_login, looks_like_key

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
    named = {pattern for pattern in pass_env if not _has_wildcard(pattern) and not _OF_PANPAN.match(pattern)}
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


def user_environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a command that the user has typed or set up: all but what looks like a secret.

    Args:
        base: What to start from; the process's own environment if not given.
    """
    start = os.environ if base is None else base
    return _quiet({name: value for name, value in start.items() if not _is_secret(name, value)})


def _quiet(kept: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in kept.items() if name not in _FORCES_COLOUR} | _QUIET


def _has_wildcard(name: str) -> bool:
    return any(character in name for character in "*?[")


def _is_secret(name: str, value: str) -> bool:
    is_named_so = name not in _HARMLESS_NAMES and _SECRET_NAME.search(name) is not None
    return is_named_so or looks_like_key(value) or holds_login(value)


_MAX_CHARS = 20_000
"""How much of the end of an output is looked at; errors stand there."""

_MISSES = re.compile(
    r"unbound|undefined|unset|missing|required|KeyError|NotPresent|environ|env(?:ironment)? var"
    r"|not (?:be )?(?:set|defined|found|present|exist)|n't (?:set|defined|find|exist)|\bmust\b|\bplease\b",
    re.IGNORECASE,
)
"""Words with which programs say that a variable is not there."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def withheld_note(output: str, given: Mapping[str, str], own: Mapping[str, str] | None = None) -> str | None:
    """Return why a command that failed misses a variable which the user has set, as a sentence; None if it does not.

    Args:
        output: What it printed, or the end of it.
        given: The environment that it had.
        own: That of panpan; the process's own if not given.
    """
    own = os.environ if own is None else own
    withheld = own.keys() - given.keys() - child_environment(own).keys() - _FORCES_COLOUR
    missed = dict.fromkeys(_missed(output[-_MAX_CHARS:], withheld))
    if not missed:
        return None
    first = next(iter(missed))
    if _OF_PANPAN.match(first):
        return f"{first} is set, but it is panpan's own and never passed on to commands"
    setting = f'environment.pass_env = ["{first}"] in his settings'
    if _SECRET_NAME.search(first):
        return (
            f"{first} is set, but commands do not get it, since it is named like a secret; unless it is the key of a"
            f" model provider, the user can pass it on with {setting}"
        )
    return f"{first} is set, but it is not among the variables that commands get; the user can add it with {setting}"


def _missed(text: str, withheld: set[str]) -> Iterator[str]:
    for line in text.splitlines():
        if _MISSES.search(line):
            yield from (name for name in _NAME.findall(line) if len(name) > 1 and name in withheld)
