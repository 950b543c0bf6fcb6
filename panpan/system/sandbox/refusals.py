"""Reasons that a failed command's output gives: the sandbox, or a variable that was withheld."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from panpan.system.environment import FORCES_COLOUR, child_environment, is_named_like_secret, is_of_panpan
from panpan.system.files.canonical import is_below, user_home
from panpan.system.sandbox.profile import Profile, is_placeholder
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_NOT_WRITTEN = compile_late(r"read-only file ?system|invalid cross-device link|\b(?:EROFS|EXDEV)\b", re.IGNORECASE)
_BUSY = compile_late(r"device or resource busy|\bEBUSY\b", re.IGNORECASE)
"""Errors of moving or removing a protected place in a box made of mounts."""
_REFUSED = compile_late(r"permission denied|operation not permitted|\bEACCES\b|\bEPERM\b", re.IGNORECASE)
_NO_NETWORK = compile_late(
    r"temporary failure (?:in name resolution|resolving)|could(?: not|n't) resolve (?:host|proxy)"
    r"|(?:unable|failed) to (?:resolve|lookup|look up)|name or service not known|no address associated with hostname"
    r"|nodename nor servname|\bgetaddrinfo\b|network is unreachable|dns error"
    r"|unknownhostexception|dial (?:tcp|udp)"
    r"|\b(?:ENETUNREACH|EAI_AGAIN|ENOTFOUND)\b",
    re.IGNORECASE,
)
_NO_VERSION = compile_late("could not find a version that satisfies", re.IGNORECASE)
"""Words of pip without a network, and of a wrong pin, too."""
_NO_OTHER_PROGRAM = compile_late(
    r"docker daemon|ssh-agent|authentication agent|failed to connect to (?:the )?bus|AF_UNIX|unix domain socket"
    r"|\bresource_sharer\b|multiprocessing[/.]connection",
    re.IGNORECASE,
)
_NO_NAMESPACE = compile_late(r"no usable sandbox|\bunshare\b|^bwrap:|user namespace|CLONE_NEW", re.IGNORECASE)
_NOT_EXECUTABLE = 126
_LAST_LINES = 10
"""Lines at the end that may tell of a refusal after which the line as a whole went well."""
_MOST_HOSTS = 5
"""Most hosts that a sentence names."""
_QUOTES = "'\"`\u2018\u2019"
_PATH = compile_late(rf"(?<![\w.])/[^\s{_QUOTES}:;,()]+")
_WORD = compile_late(rf"[^\s{_QUOTES}:;,()]+")
_MOST_WORDS = 100
"""Most words of one line that are taken for paths."""
_BETWEEN_NAMES = compile_late(rf"[\s/:{_QUOTES}]")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A thing that the sandbox did not let a command do."""

    text: str
    needs_network: bool = False
    """True if it wanted the network; else a place outside the sandbox."""
    closed: str = ""
    """The place or thing that was closed, in two or three words for people; empty if the sandbox may not be the
    reason."""


def refusal_in(output: str, exit_code: int, profile: Profile) -> Refusal | None:
    """Return what the sandbox probably did not let a command do.

    Args:
        output: What the command printed, or the end of it.
        exit_code: How it ended; after 0 only the plainest signs at the end count, for a line that ends in `| tail` or
            `|| true` fails without saying so.
        profile: The bounds within which it ran.
    """
    lines = output.splitlines()[::-1]
    if exit_code == 0:
        return _hidden_refusal(lines[:_LAST_LINES], profile)
    if line := _first(_NOT_WRITTEN, lines):
        return _cannot_write(line, profile)
    if (line := _first(_BUSY, lines)) and _protected_in(line, profile):
        return _cannot_write(line, profile)
    if _lacks_network(lines, profile):
        return _no_network(profile)
    if _first(_NO_NAMESPACE, lines):
        return Refusal("The sandbox lets this command make no sandbox, namespaces or mounts of its own.")
    if not (line := _first(_REFUSED, lines)):
        return None
    if _NO_OTHER_PROGRAM.search(output):
        return Refusal(
            "The sandbox lets this command make no unix sockets, through which it could reach other programs."
        )
    if exit_code == _NOT_EXECUTABLE or _may_write_all_of(line, profile):
        return None
    if not profile.has_network and re.search(r"socket", output, re.IGNORECASE):
        return _no_network(profile)
    refusal = _cannot_write(line, profile)
    return refusal if _protected_in(line, profile) else replace(refusal, closed="")


def hidden_from(command: str, output: str, profile: Profile) -> Refusal | None:
    """Return why a command that failed did not find what it names; None if nothing is hidden from it.

    What is `closed` then is open in the usual box.

    Args:
        command: The line.
        output: What it printed, or the end of it.
        profile: The bounds within which it ran.
    """
    home = user_home()
    for text in (output, command):
        words = set(_BETWEEN_NAMES.split(text))
        for place in profile.hidden:
            if place.name in words and place != home:
                return Refusal(
                    f"The sandbox hides {place}, which holds secrets or is closed by a rule. The user can open it with "
                    f"the setting sandbox.readable, or a rule that allows Read({_as_rule(place, home)})."
                )
        for found in _PATH.findall(text.replace("~/", f"{home}/")):
            if home in profile.hidden and is_below(path := Path(found), home) and not _is_shown(path, profile):
                text = (
                    "The sandbox shows a command that runs without a question only the workspace and programs of the "
                    f"home; {path} is not there. Name it as a word of its own and the user is asked, or tell them to "
                    "add its folder to the setting sandbox.readable."
                )
                return Refusal(text, closed=str(path) if os.path.lexists(path) else "")
    return None


def _as_rule(place: Path, home: Path) -> str:
    path = f"~/{place.relative_to(home)}" if is_below(place, home) else f"/{place}"
    return f"{path}/**" if place.is_dir() else path


def _is_shown(path: Path, profile: Profile) -> bool:
    return any(is_below(path, place) for place in (*profile.shown, *profile.writable))


def _hidden_refusal(lines: Sequence[str], profile: Profile) -> Refusal | None:
    if not profile.protected:  # the command only looks, so its output is what it found
        return None
    if line := _first(_NOT_WRITTEN, lines):
        return _cannot_write(line, profile)
    return _no_network(profile) if _lacks_network(lines, profile) else None


def _lacks_network(lines: Sequence[str], profile: Profile) -> bool:
    """True if the lines tell of a missing network; with a proxy, which knows what it refused, a version does not."""
    if profile.has_network:
        return False
    return bool(_first(_NO_NETWORK, lines) or (profile.proxy is None and _first(_NO_VERSION, lines)))


def _first(pattern: re.Pattern[str], lines: Sequence[str]) -> str | None:
    return next((line for line in lines if pattern.search(line)), None)


def _no_network(profile: Profile) -> Refusal:
    text = "The sandbox gives this command no network"
    if profile.proxy is not None:
        hosts = describe_hosts(profile.proxy.domains)
        text += f" but the proxy that https_proxy names, which leads to {hosts} and to no other host"
    return Refusal(f"{text}.", needs_network=True, closed="the network")


def describe_hosts(domains: Sequence[str]) -> str:
    """Return the granted hosts as a sentence names them, of many the first."""
    more = f" (and {len(domains) - _MOST_HOSTS} more)" if len(domains) > _MOST_HOSTS else ""
    return f"{', '.join(domains[:_MOST_HOSTS])}{more}"


def _cannot_write(line: str, profile: Profile) -> Refusal:
    if places := _protected_in(line, profile):
        name = places[0].name
        told = str(places[0]) if len(places) == 1 else f"this {name}"
        return Refusal(f"The sandbox keeps {told} as it is, since it is a protected place.", closed=name)
    if not profile.writable:
        return Refusal("The sandbox lets this command change no files.", closed="changes of files")
    text = f"The sandbox lets this command change files only in {_listed(profile.writable)}."
    return Refusal(text, closed="changes outside the workspace")


def _protected_in(line: str, profile: Profile) -> Sequence[Path]:
    """Return the protected place that a line names; several where it may be each of these.

    A path may be relative to wherever a program has gone. So what exists counts more than what does not, and then the
    place with which more of the path agrees.
    """
    found: dict[Path, tuple[bool, int]] = {}
    for word in _WORD.findall(line)[:_MOST_WORDS]:
        path = Path(word)
        for place in profile.protected:
            if is_below(path, place):
                agreeing = len(place.parts)
            elif place.name in path.parts and not path.is_absolute():
                agreeing = _agreeing_at_end(place.parts, path.parts[: path.parts.index(place.name) + 1])
            else:
                continue
            is_there = os.path.lexists(place) and not is_placeholder(str(place))
            found[place] = max((is_there, agreeing), found.get(place, (False, 0)))
    most = max(found.values(), default=None)
    return [place for place, rank in found.items() if rank == most]


def _agreeing_at_end(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(bool, (a == b for a, b in zip(one[::-1], other[::-1], strict=False))))


def _listed(paths: Sequence[Path]) -> str:
    *others, last = (str(path) for path in paths)
    return f"{', '.join(others)} and {last}" if others else last


def _may_write_all_of(line: str, profile: Profile) -> bool:
    """True if the line names paths, and all of them may be written, so that something else is in the way."""
    paths = [Path(found) for found in _PATH.findall(line)]
    return bool(paths) and all(_may_write(path, profile) for path in paths)


def _may_write(path: Path, profile: Profile) -> bool:
    # Under Landlock nothing can be created beside a protected place, so that folder is no sign of anything else.
    if any(path.parent == place.parent or is_below(path, place) for place in profile.protected):
        return False
    return any(is_below(path, root) for root in profile.writable)


_MISSES = compile_late(
    r"unbound|undefined|unset|missing|required|KeyError|NotPresent|environ|env(?:ironment)? var"
    r"|not (?:be )?(?:set|defined|found|present|exist)|n't (?:set|defined|find|exist)|\bmust\b|\bplease\b",
    re.IGNORECASE,
)
"""Words with which programs say that a variable is not there."""
_NAME = compile_late(r"[A-Za-z_][A-Za-z0-9_]*")


def withheld_note(output: str, given: Mapping[str, str], own: Mapping[str, str]) -> str | None:
    """Return why a command that failed misses a variable which the user has set, as a sentence; None if it does not."""
    withheld = own.keys() - given.keys() - child_environment(own).keys() - FORCES_COLOUR
    missed = dict.fromkeys(_missed(output, withheld))
    if not missed:
        return None
    first = next(iter(missed))
    if is_of_panpan(first):
        return f"{first} is set, but it is panpan's own and never passed on to commands"
    setting = f'environment.pass_env = ["{first}"] in their settings'
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
