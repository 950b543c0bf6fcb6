"""The file of a skill, `SKILL.md`, and of a slash command, which is a skill of one file.

The rule: a skill in use is read leniently, with what is wrong told beside it. `check_skill` reads as strictly as the
specification of Agent Skills (agentskills.io) says.
"""

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import get_args

from panpan.config.places import BroughtFile
from panpan.config.plugins.store import PluginPlace
from panpan.permissions.rules.rules import split_rules
from panpan.system.text.front_matter import (
    Entry,
    FrontMatterError,
    YamlError,
    parts_of_file,
    read_front_matter,
    structure_of,
)
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort
from panpan.types.pattern import compile_late

MAX_NAME = 64
MAX_DESCRIPTION = 1_024
MAX_COMPATIBILITY = 500
"""Characters; limits of the specification."""
SKILL_FILE = "SKILL.md"

_SPECIFIED = frozenset({"name", "description", "license", "compatibility", "metadata", "allowed-tools"})
_NAME = compile_late(r"[\w.-]+(?::[\w.-]+)*")
_OWN_SCRIPTS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")
"""Scripts with letters that look like Latin ones."""
_WORD = compile_late(r"(?:[^\s,{}]|\{[^{}]*\})+")
"""A word or glob; commas in braces belong to it."""


@dataclass(frozen=True, slots=True)
class Fork:
    """The subagent that follows a skill."""

    agent: str
    """Its kind."""
    model: str = ""
    """Its model; empty for that of its kind."""
    in_background: bool = False
    """True if nobody waits for it."""


@dataclass(frozen=True, slots=True)
class Following:
    """Conditions under which a skill is followed."""

    fork: Fork | None = None
    """The subagent that follows it; None if the agent does that begins it."""
    model: str = ""
    """Model for its turn if the user calls it; empty for the present one."""
    effort: Effort | None = None
    """Effort for its turn if the user calls it; None for the present one."""
    hooks: bytes = b""
    """Hooks that run while it is followed, as JSON; empty without any."""


@dataclass(frozen=True, slots=True)
class Skill:
    """Instructions for a kind of task."""

    name: str
    description: str
    body: str
    place: str
    """Its file, absolute or from the root of the project; empty for one of panpan's own."""
    plugin: PluginPlace | None = None
    """The plug-in that it is of."""
    is_command: bool = False
    """True for a file of its own, which has no folder with further files."""
    is_for_model: bool = True
    """False if only the user may begin it."""
    is_for_user: bool = True
    """False if it is no slash command."""
    argument_hint: str = ""
    arguments: Sequence[str] = ()
    """Names for its arguments, in order."""
    allowed_tools: Sequence[str] = ()
    """Permission rules that allow while it is followed."""
    disallowed_tools: Sequence[str] = ()
    """Permission rules that deny meanwhile."""
    following: Following = Following()
    """Conditions under which it is followed."""
    paths: Sequence[str] = ()
    """Globs of the files for which it is offered; empty for all work."""
    problems: Sequence[str] = field(default=(), compare=False)
    """Parts of it that cannot be used, each with file and line."""

    @property
    def fork(self) -> Fork | None:
        """The subagent that follows it; None if the agent does that begins it."""
        return self.following.fork

    @property
    def hooks(self) -> bytes:
        """Hooks that run while it is followed, as JSON; empty without any."""
        return self.following.hooks

    @property
    def is_of_project(self) -> bool:
        """True if it is the project's own."""
        return bool(self.place) and not self.place.startswith("/")


def hook_lines(skill: Skill) -> Iterator[str]:
    """Yield the hooks of a skill for a person, a line each, with all that is written of them."""
    events = json.loads(skill.hooks)["hooks"] if skill.hooks else {}
    for event, groups in events.items() if isinstance(events, dict) else [("", events)]:
        for group in groups if isinstance(groups, list) else [groups]:
            hooks = group.get("hooks") if isinstance(group, dict) else None
            matcher = f" {group['matcher']}" if isinstance(hooks, list) and group.get("matcher") else ""
            for hook in hooks if isinstance(hooks, list) else [group]:
                yield f"{event}{matcher}: {json.dumps(hook, ensure_ascii=False)}"


class SkillError(ValueError):
    """The file holds no skill that can be used; says why, with its line."""


def read_skill(file: BroughtFile) -> Skill:
    """Return the skill in a file.

    Raises:
        SkillError: It cannot be used.
    """
    *_, folder, name = ("", *file.name.split("/"))
    is_command = file.kind == "commands"
    if file.plugin is not None and file.name == f"{file.plugin.root}/SKILL.md":
        folder = file.plugin.name  # the folder of a plug-in has a name of panpan's
    own_name = file.given_name or (name.removesuffix(".md") if is_command else folder)
    if file.is_strict:
        for problem in check_skill(file.data.decode(errors="replace"), folder):
            raise SkillError(f"{file.name}: the specification forbids it: {problem}")
    try:
        parts = parts_of_file(file.data)
    except FrontMatterError as error:
        raise SkillError(f"{file.name}:{error.line}: {error}") from None
    head = _Head(parts.head, file.name)
    for key, line in parts.repeated.items():
        head.tell(f"{key} appears twice; this one counts", line)
    written = head.text("name")
    name = _usable_name(own_name, "" if is_command else written, head)
    if file.plugin is not None:
        name = f"{file.plugin.name}:{name}"
    if not parts.body and not head.text("description"):
        raise SkillError(f"{file.name}: it is empty")
    description = " ".join(head.text("description").split()) or _first_words(parts.body)
    has_description = bool(head.text("description"))
    if not (is_command or has_description):
        head.tell("it has no description; its first words stand for one")
    if when := " ".join(head.text("when_to_use").split()):
        description = f"{description} {when}"
    if len(description) > MAX_DESCRIPTION:
        head.tell(f"its description has {len(description):,} characters, of which {MAX_DESCRIPTION:,} count")
        description = f"{description[:MAX_DESCRIPTION].rstrip()}…"
    following = _following(head, file, is_command=is_command)
    head.one_of("shell", ("", "bash", "sh"))
    skill = Skill(
        name,
        description,
        parts.body,
        file.name,
        plugin=file.plugin,
        is_command=is_command,
        is_for_model=not head.yes("disable-model-invocation", default=is_command and not has_description),
        is_for_user=head.yes("user-invocable", default=True),
        argument_hint=" ".join(head.text("argument-hint").split()),
        arguments=head.items("arguments", _WORD.findall),
        allowed_tools=head.items("allowed-tools", split_rules),
        disallowed_tools=head.items("disallowed-tools", split_rules),
        following=following,
        paths=head.items("paths", _WORD.findall),
        problems=head.problems,
    )
    head.tell_rest()
    return skill


def _following(head: "_Head", file: BroughtFile, *, is_command: bool) -> Following:
    forks = head.one_of("context", ("", "inline", "fork")) == "fork"
    agent, model, in_background = head.text("agent"), head.text("model"), head.yes("background", default=False)
    model = "" if model == "inherit" else model
    said = head.one_of("effort", ("", *get_args(Effort)))
    effort = next((one for one in get_args(Effort) if one == said), None)
    hooks = _hooks(head, file)
    if forks or (is_command and agent):
        if effort:
            head.tell("effort has no effect with context: fork")
        return Following(Fork(agent or "general-purpose", model, in_background), hooks=hooks)
    if in_background:
        head.tell("background has no effect without context: fork")
    return Following(None, model, effort, hooks)


def _hooks(head: "_Head", file: BroughtFile) -> bytes:
    if not head.has("hooks"):
        return b""
    try:
        events = structure_of(file.data, "hooks")
    except YamlError as error:
        raise SkillError(f"{file.name}:{error.line}: its hooks cannot be read: {error}") from None
    return json.dumps({"hooks": events}, indent=1).encode()


class _Head:
    """Reads the head of a skill, and notes what is wrong in it."""

    def __init__(self, head: Mapping[str, Entry], name: str) -> None:
        self._head = head
        self._name = name
        self._known = set(_SPECIFIED)
        self.problems: list[str] = []

    def tell(self, text: str, line: int = 1) -> None:
        self.problems.append(f"{self._name}:{line}: {text}")

    def has(self, key: str) -> bool:
        """Return whether it has a key, which is known then."""
        return self._entry(key) is not None

    def _entry(self, key: str) -> Entry | None:
        self._known.add(key)
        return self._head.get(key)

    def text(self, key: str) -> str:
        """Return a text, empty where there is none."""
        match self._entry(key):
            case None:
                return ""
            case Entry(value=str(text)):
                return text.strip()
            case Entry(value=tuple(items)) if key == "argument-hint":  # [file] is a list for YAML
                return f"[{', '.join(items)}]"
            case Entry(line=line):
                self.tell(f"{key} has to be a text and is not used", line)
                return ""

    def yes(self, key: str, *, default: bool) -> bool:
        value = self.text(key).casefold()
        if value in ("", "true", "yes", "on", "false", "no", "off"):
            return default if not value else value in ("true", "yes", "on")
        self.tell(f"{key} is {value}; write true or false", self._head[key].line)
        return default

    def one_of(self, key: str, choices: Sequence[str]) -> str:
        value = self.text(key)
        if value in choices:
            return value
        self.tell(f"{key} is {value}, which is not known and not used", self._head[key].line)
        return choices[0]

    def items(self, key: str, split: Callable[[str], Sequence[str]]) -> Sequence[str]:
        """Return the items of a list, which may be written as a text."""
        entry = self._entry(key)
        if entry is None or isinstance(entry.value, Mapping):
            if entry is not None:
                self.tell(f"{key} has to be a list and is not used", entry.line)
            return ()
        return tuple(split(entry.value)) if isinstance(entry.value, str) else entry.value

    def tell_rest(self) -> None:
        for key, entry in self._head.items():
            if key not in self._known and key != "version":
                self.tell(f"the key {key} is not known and not used", entry.line)


def _usable_name(own: str, written: str, head: _Head) -> str:
    """Return the name to use: that of the file or folder, as in Claude Code, or the written one.

    Raises:
        SkillError: Neither can be used, or it looks like another one.
    """
    own, written = (unicodedata.normalize("NFKC", one) for one in (own, written))
    name = written if _can_be_typed(written) and not _can_be_typed(own) else own
    if not _NAME.fullmatch(name):
        raise SkillError(f"{head._name}: {name!r} can be no name; use letters, digits, - and _")
    if problem := mixed_scripts(name) or mixed_scripts(written):
        raise SkillError(f"{head._name}: {problem}")
    if written and written.casefold() != name.casefold():
        head.tell(f"its name is {written}, and it is called by its folder, /{name.casefold()}")
    elif name != own:
        head.tell(f"its folder {own} is no name of a command, so it is called by its name, /{name.casefold()}")
    return name.casefold()


def _can_be_typed(name: str) -> bool:
    return len(name) <= MAX_NAME and _NAME.fullmatch(name) is not None


def mixed_scripts(name: str) -> str:
    """Return why a name may be taken for another one; empty if it may not."""
    if name.isascii():
        return ""
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in name if letter.isalpha()}
    odd = sorted(scripts.intersection(_OWN_SCRIPTS))
    if not odd or "LATIN" not in scripts:
        return ""
    return f"the name {name!r} mixes Latin with {odd[0].capitalize()} letters, which look alike; rename it"


def _first_words(body: str) -> str:
    lines = (line.strip().lstrip("#").strip() for line in body.split("\n"))
    return next((line for line in lines if line), "")[:MAX_DESCRIPTION]


def check_skill(text: str, folder: str) -> Iterator[str]:
    """Yield what the specification of Agent Skills forbids in a `SKILL.md`, a sentence each.

    Args:
        text: Its text.
        folder: Name of its folder.
    """
    try:
        parts = read_front_matter(text, is_strict=True)
    except FrontMatterError as error:
        yield f"line {error.line}: {error}"
        return
    if parts is None:
        yield "it has no head; begin with a line of ---"
        return
    head = parts.head
    for key, line in parts.repeated.items():
        yield f"line {line}: {key} appears twice"
    for key in sorted(head.keys() - _SPECIFIED):
        yield f"line {head[key].line}: {key} is no key of the specification"
    yield from _check_name(head, unicodedata.normalize("NFKC", folder))
    yield from _check_text(head, "description", MAX_DESCRIPTION, is_needed=True)
    yield from _check_text(head, "compatibility", MAX_COMPATIBILITY, is_needed=False)


def _check_name(head: Mapping[str, Entry], folder: str) -> Iterator[str]:
    entry = head.get("name")
    if entry is None or not isinstance(entry.value, str) or not entry.value.strip():
        yield "it has no name" if entry is None else f"line {entry.line}: name is empty, or no text"
        return
    name, line = unicodedata.normalize("NFKC", entry.value.strip()), entry.line
    if len(name) > MAX_NAME:
        yield f"line {line}: name has {len(name)} characters; {MAX_NAME} are allowed"
    if name != name.lower():
        yield f"line {line}: name has capital letters"
    if name.startswith("-") or name.endswith("-") or "--" in name:
        yield f"line {line}: name begins or ends with a hyphen, or has two in a row"
    if not all(letter.isalnum() or letter == "-" for letter in name):
        yield f"line {line}: name has other characters than letters, digits and hyphens"
    if name != folder:
        yield f"line {line}: name is {name}, and the folder is called {folder}"


def _check_text(head: Mapping[str, Entry], key: str, most: int, *, is_needed: bool) -> Iterator[str]:
    entry = head.get(key)
    if entry is None:
        if is_needed:
            yield f"it has no {key}"
    elif not isinstance(entry.value, str) or (is_needed and not entry.value.strip()):
        yield f"line {entry.line}: {key} is empty, or no text"
    elif len(entry.value) > most:
        yield f"line {entry.line}: {key} has {len(entry.value):,} characters; {most:,} are allowed"
