"""All definitions of a session, by name: which files count, and which of several of one name.

The command line is stronger than the project, the project than the user, the user than plug-ins, these than what is
shipped. The rule: a definition never gives rights; an agent has those that both it and whoever starts it have.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from panpan.capabilities.subagents.definitions.files import hooks_as_json, read_definition, read_text, with_servers
from panpan.capabilities.subagents.definitions.read_definition import Problem, definition_from
from panpan.capabilities.subagents.task import mentionable_names
from panpan.config.places import Places
from panpan.errors import ConfigError
from panpan.system.text.front_matter import Entry, Value
from panpan.system.text.terminal_text import printable
from panpan.types.agent import AGENTS_EXAMPLE, AgentDefinition, AgentKinds, servers_in
from panpan.types.attachments import MentionableNames
from panpan.types.dataclass import dataclass
from panpan.types.events import known_name

MAX_WARNINGS = 10


@dataclass(frozen=True, slots=True)
class Found:
    """A definition, and how far it is believed."""

    definition: AgentDefinition
    is_bound: bool = False
    """True if its model only counts at the provider of whoever starts it."""


@dataclass(slots=True)
class _Loaded:
    found: dict[str, Found] = field(default_factory=dict)
    hidden: list[Found] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    waiting: Sequence[str] = ()
    """Sentences about files that wait for trust."""

    def add(self, found: Found) -> None:
        name = found.definition.name
        if name in self.found:
            self.hidden.append(self.found[name])
        self.found[name] = found


class AgentDefinitions(MentionableNames, AgentKinds):
    """The kinds of subagents. Files are read when somebody first asks, and never again."""

    def __init__(self, load: Callable[[], _Loaded] = _Loaded) -> None:
        self._load = load

    @classmethod
    def of(cls, *definitions: AgentDefinition) -> "AgentDefinitions":
        return cls(lambda: _Loaded({one.name: Found(one) for one in definitions}))

    @property
    def all(self) -> Sequence[AgentDefinition]:
        return [found.definition for _, found in sorted(self._loaded.found.items())]

    @property
    def names(self) -> Sequence[str]:
        return sorted(self._loaded.found)

    @property
    def mentionable_names(self) -> frozenset[str]:
        return mentionable_names(self.names)

    def get(self, name: str) -> AgentDefinition | None:
        """Return the definition of this name; case makes no difference where only one is called so."""
        found = self._loaded.found.get(known_name(name, self._loaded.found))
        return None if found is None else found.definition

    def is_bound(self, name: str) -> bool:
        """True if its model only counts at the provider of whoever starts it, so that no file sends code elsewhere."""
        found = self._loaded.found.get(name)
        return found is not None and found.is_bound

    @property
    def hidden(self) -> Sequence[AgentDefinition]:
        return [found.definition for found in self._loaded.hidden]

    @property
    def problems(self) -> Sequence[Problem]:
        return self._loaded.problems

    @property
    def warnings(self) -> Sequence[str]:
        """Sentences for the user: files that are not used, with the first reason."""
        first: dict[str, Problem] = {}
        for problem in self.problems:
            if problem.is_error:
                first.setdefault(problem.source or problem.text, problem)
        shown = list(first.values())[:MAX_WARNINGS]
        warnings = [f"no agent is made of {problem}" if problem.source else str(problem) for problem in shown]
        if (more := len(first) - MAX_WARNINGS) > 0:
            warnings.append(f"… nor of {more:,} more files; `panpan agents check` shows all")
        return [*warnings, *self._loaded.waiting]

    @cached_property
    def _loaded(self) -> _Loaded:
        return self._load()


def load_definitions(places: Places, given: Mapping[str, Any] | None = None) -> AgentDefinitions:
    """Return the definitions of a session, given those of `--agents`; no file is read before somebody asks for one."""
    strongest = given_definitions(given or {})

    def load() -> _Loaded:
        loaded = _Loaded(waiting=places.told_waiting("agents", "agents"))
        for definition in shipped_definitions():
            loaded.add(Found(definition))
        for found in brought_definitions(places, loaded.problems):
            loaded.add(found)
        for definition in strongest:
            loaded.add(Found(definition))
        return loaded

    return AgentDefinitions(load)


def brought_definitions(places: Places, problems: list[Problem]) -> Iterator[Found]:
    """Yield the definitions in files, the weakest first.

    Args:
        places: Places of the files.
        problems: Gets what is wrong with them.
    """
    unread: list[str] = []
    for file in places.files(("agents",), unread):
        definition, wrong = read_definition(file, str(places.trust.files.root / file.name))
        problems += wrong
        if definition is None:
            continue
        if file.plugin is not None:
            if definition.hooks:
                text = "its hooks do not run, since those of a plug-in are in hooks/hooks.json"
                problems.append(Problem(text, is_error=False, source=file.name))
            definition = replace(definition, name=f"{file.plugin.name}:{definition.name}", hooks=b"")
        is_panpans = file.is_users and places.home is not None and Path(file.name).is_relative_to(places.home)
        yield Found(definition, is_bound=not is_panpans)
    problems += map(Problem, unread)


COMMAND_LINE = "--agents"


def given_definitions(given: Mapping[str, Any]) -> Sequence[AgentDefinition]:
    """Return the definitions of the command line, in their order."""
    return [_definition(name, said) for name, said in given.items()]


def _definition(name: str, said: Any) -> AgentDefinition:
    if not isinstance(said, Mapping):
        raise ConfigError(f"--agents: {printable(name)!r} is not a JSON object; write one such as {AGENTS_EXAMPLE}")
    prompt = said.get("prompt", "")
    apart = ("prompt", "hooks", "mcpServers")
    head = {key: Entry(_value(value)) for key, value in said.items() if key not in apart and value is not None}
    head["name"] = Entry(name)
    definition, problems = definition_from(head, prompt if isinstance(prompt, str) else "", COMMAND_LINE)
    if definition is None:
        wrong = next(problem.text for problem in problems if problem.is_error)
        raise ConfigError(printable(f"--agents: {name[:100]}: {wrong}"))
    definition = with_servers(definition, servers_in(said.get("mcpServers")))
    return replace(definition, hooks=hooks_as_json(said["hooks"])) if said.get("hooks") else definition


def _value(value: Any) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return {str(key): Entry(_value(item)) for key, item in value.items()}
    return tuple(map(str, value)) if isinstance(value, list | tuple) else str(value)


SHIPPED = "panpan"


@cache
def shipped_definitions() -> Sequence[AgentDefinition]:
    """Return the shipped definitions by name; they are read once."""
    definitions = []
    for file in sorted(_folder().iterdir(), key=lambda file: file.name):
        if file.name.endswith(".md"):
            text = file.read_text(encoding="utf-8")
            definition, _ = read_text(text, SHIPPED)
            if definition is not None:
                definitions.append(definition)
    return definitions


def _folder() -> Traversable:
    package = files("panpan")
    installed = package.joinpath("_shipped", "agents")
    checkout = Path(str(package)).parent / "agents"
    return checkout if checkout.is_dir() and not installed.is_dir() else installed
