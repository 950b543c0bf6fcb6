"""Settings that users have written for Claude Code in `.claude/settings*.json`, as far as panpan has the same.

The rule: such a file is weaker than the one of panpan beside it. It keeps no session from opening: what cannot be used
of it is told and left out. Of a project only permission rules count, and until it is trusted, only those that ask or
deny.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from panpan.config.settings import is_variable_value
from panpan.config.settings_file import Source, SourceKind
from panpan.config.trust import ProjectTrust
from panpan.errors import ConfigError, ToolError
from panpan.system.environment import is_named_like_secret
from panpan.system.files.canonical import user_home
from panpan.system.files.read_file import read_users_file
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MAX_BYTES = 1_000_000
MAX_RULES = 1_000
"""Rules of each kind that count in one file."""
MAX_CHARS = 500
"""Most characters of a rule or another text, as in the settings of panpan."""
_NAME = compile_late(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
"""Name of a variable."""
_NAMES = ("settings.json", "settings.local.json")
_USED = frozenset({"permissions", "outputStyle", "statusLine", "hooks", "disableAllHooks", "env", "$schema"})
_BEHAVIOURS = ("allow", "ask", "deny")


@dataclass(frozen=True, slots=True)
class ClaudeFile:
    """A settings file of Claude Code."""

    place: str
    """Its path: absolute, or from the root of the project."""
    path: Path
    kind: SourceKind
    values: Mapping[str, Any]
    """Settings of panpan that it makes."""
    unused: Sequence[str] = ()
    """Keys that have no effect in panpan."""
    problems: Sequence[str] = ()
    """Reasons why rules in it do not hold, a sentence each."""

    @property
    def source(self) -> Source:
        return Source(self.kind, self.place, self.values, {}, self.path, is_shared=True)


def claude_files(trust: ProjectTrust) -> Sequence[ClaudeFile]:
    """Return the files of the user, then those of the project.

    Args:
        trust: The project. If it is the user's home folder, its files are the user's own.
    """
    return [*_of_user(trust.files.root), *_of_project(trust)]


def _of_user(root: Path) -> Iterator[ClaudeFile]:
    home = user_home()
    for name in _NAMES if root == home else _NAMES[:1]:
        path = home / ".claude" / name
        if not os.path.lexists(path):
            continue
        try:
            data = read_users_file(str(path), max_bytes=MAX_BYTES)
        except ToolError as error:
            yield _unread(str(path), path, "user", str(error))
        else:
            yield _read(data, str(path), path, "user", _BEHAVIOURS)


def _of_project(trust: ProjectTrust) -> Iterator[ClaudeFile]:
    files, behaviours = trust.files, _BEHAVIOURS if trust.is_trusted else _BEHAVIOURS[1:]
    for place in (f".claude/{name}" for name in _NAMES):
        if place in files.problems:
            yield _unread(place, files.root / place, "project", files.problems[place])
        elif place in files.content:
            yield _read(files.content[place], place, files.root / place, "project", behaviours)


def _unread(place: str, path: Path, kind: SourceKind, why: str) -> ClaudeFile:
    return ClaudeFile(place, path, kind, {}, problems=(f"{place}: its permission rules do not hold: {why}",))


def _read(data: bytes, place: str, path: Path, kind: SourceKind, behaviours: Sequence[str]) -> ClaudeFile:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return _unread(place, path, kind, "it is no JSON")
    if not isinstance(found, dict):
        return _unread(place, path, kind, "it holds no object")
    problems: list[str] = []
    permissions = found.get("permissions", {})
    rules = dict(_rules(permissions, behaviours, lambda why: problems.append(f"{place}: {why}")))
    inner = permissions.keys() - set(_BEHAVIOURS) if isinstance(permissions, dict) else ()
    used = _USED if kind == "user" else _USED - {"env"}
    unused = [*sorted(found.keys() - used), *(f"permissions.{key}" for key in sorted(inner))]
    values: dict[str, Any] = {"permission": rules} if rules else {}
    if kind == "user":
        values |= dict(_looks(found))
        if variables := _variables(found, lambda why: problems.append(f"{place}: {why}"), unused):
            values["environment"] = {"variables": variables}
    return ClaudeFile(place, path, kind, values, unused, problems)


_OWN_KEYS = frozenset(
    {"permissions", "outputStyle", "statusLine", "disableAllHooks", "env", "$schema", "includeCoAuthoredBy"}
    | {"cleanupPeriodDays", "apiKeyHelper", "enabledPlugins", "enableAllProjectMcpServers", "alwaysThinkingEnabled"}
)
"""Keys that settings of panpan do not have, by which those of Claude Code are known."""


def is_claudes(found: Mapping[str, Any]) -> bool:
    """Return True if settings as JSON are in the words of Claude Code, and not of panpan."""
    sandbox = found.get("sandbox")
    return not _OWN_KEYS.isdisjoint(found) or (isinstance(sandbox, Mapping) and "enabled" in sandbox)


def given_values(found: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """Return the settings of panpan that such settings of the command line make; what panpan does not have is left out.

    Raises:
        ConfigError: A rule, variable or other value in them cannot be used.
    """
    permissions, sandbox = found.get("permissions", {}), found.get("sandbox", {})
    if not isinstance(permissions, dict) or not isinstance(sandbox, dict):
        raise ConfigError(f"{place}: permissions and sandbox are objects")
    problems: list[str] = []
    values: dict[str, Any] = dict(_looks(found))
    rules = dict(_rules(permissions, _BEHAVIOURS, problems.append))
    if (mode := permissions.get("defaultMode")) is not None:
        rules["mode"] = "default" if mode == "manual" else mode
    if variables := _variables(found, problems.append, []):
        values["environment"] = {"variables": variables}
    if problems:
        raise ConfigError(f"{place}: {problems[0]}")
    if rules:
        values["permission"] = rules
    if (folders := permissions.get("additionalDirectories")) is not None:
        values["additional_directories"] = folders
    if box := dict(_box(sandbox)):
        values["sandbox"] = box
    return values | {key: found[key] for key in ("model", "hooks") if key in found}


def _box(sandbox: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(is_on := sandbox.get("enabled"), bool):
        yield "mode", "on" if is_on else "off"
    excluded, network = sandbox.get("excludedCommands"), sandbox.get("network")
    if isinstance(excluded, list) and excluded:
        yield "outside", [f"{command} *" if " " not in str(command) else command for command in excluded]
    hosts = network.get("allowedDomains") if isinstance(network, Mapping) else None
    if isinstance(hosts, list) and hosts:
        yield "domains", hosts


def _rules(permissions: object, behaviours: Sequence[str], tell: Callable[[str], None]) -> Iterator[tuple[str, Any]]:
    if not isinstance(permissions, dict):
        tell("permissions is no object, so no rule in it holds")
        return
    for behaviour in behaviours:
        written = permissions.get(behaviour, [])
        if not isinstance(written, list):
            tell(f"permissions.{behaviour} is no list, so no rule in it holds")
            continue
        if len(written) > MAX_RULES:
            tell(f"permissions.{behaviour} has {len(written):,} rules, of which the first {MAX_RULES:,} hold")
        texts = [text for text in written[:MAX_RULES] if _is_text(text)]
        if left := len(written[:MAX_RULES]) - len(texts):
            limit = f"texts of up to {MAX_CHARS} characters"
            tell(f"{left:,} rules of permissions.{behaviour} do not hold: they are no {limit}")
        if texts:
            yield behaviour, texts


def _looks(found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    style, line = found.get("outputStyle"), found.get("statusLine")
    if _is_text(style):
        yield "output_style", style
    if isinstance(line, dict) and line.get("type", "command") == "command" and _is_text(line.get("command")):
        yield "ui", {"status_line": line["command"]}


def _variables(found: Mapping[str, Any], tell: Callable[[str], None], unused: list[str]) -> Mapping[str, str]:
    """Return the variables that commands may get; keys among them are not passed on."""
    variables = found.get("env", {})
    if not isinstance(variables, dict):
        tell("env is no object and is not used")
        return {}
    kept: dict[str, str] = {}
    for name, value in variables.items():
        if not (_NAME.fullmatch(name) and isinstance(value, str) and is_variable_value(value)):
            tell(f"the variable {name[:60]!r} of env cannot be used")
        elif is_named_like_secret(name):
            unused.append(f"env.{name}")
        else:
            kept[name] = value
    return kept


def _is_text(value: object) -> bool:
    if not (isinstance(value, str) and value.strip() and len(value) <= MAX_CHARS):
        return False
    return not any(0xD800 <= ord(letter) <= 0xDFFF for letter in value)
