"""All definitions of a session, by name: which files count, and which of several of one name.

The command line is stronger than the project, the project than the user, the user than what is shipped. The rule: what
a project that nobody trusts defines never takes the place of anything else, and which model is asked, and that more may
be spent, is never said by a file of a project that the user did not trust, byte for byte. A definition never gives
rights: an agent has those that both it and whoever starts it have.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from panpan.capabilities.subagents.definitions.files import (
    Place,
    ReadFile,
    hooks_as_json,
    places_of_project,
    places_of_user,
    read_place,
    read_text,
)
from panpan.capabilities.subagents.definitions.read_definition import Problem, definition_from
from panpan.capabilities.subagents.task import mentionable_names
from panpan.config.places import Places
from panpan.config.trust import ProjectTrust
from panpan.errors import ConfigError
from panpan.system.text.front_matter import Entry, Value
from panpan.system.text.terminal_text import printable
from panpan.types.agent import AGENTS_EXAMPLE, AgentDefinition, AgentKinds
from panpan.types.attachments import MentionableNames
from panpan.types.dataclass import dataclass
from panpan.types.events import known_name

MAX_WARNINGS = 10
MAX_ROUNDS_OF_PROJECT = 100
"""Most rounds of an agent of a project, unless the user trusts the file."""


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
    held_back: list[str] = field(default_factory=list)
    """Names that would count if the user trusted the project."""

    def add(self, found: Found) -> None:
        name = found.definition.name
        if name in self.found:
            self.hidden.append(found)
        else:
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
                first.setdefault(problem.source, problem)
        warnings = [f"no agent is made of {problem}" for problem in list(first.values())[:MAX_WARNINGS]]
        if (more := len(first) - MAX_WARNINGS) > 0:
            warnings.append(f"… nor of {more:,} more files; `panpan agents check` shows all")
        if names := ", ".join(self._loaded.held_back[:MAX_WARNINGS]):
            how = "do not count until you trust it: `panpan agents list` shows them, `panpan trust add` trusts it"
            warnings.append(f"this project's own definitions of {names} {how}")
        return warnings

    @cached_property
    def _loaded(self) -> _Loaded:
        return self._load()


def load_definitions(
    project_root: Path,
    cwd: Path,
    user_home: Path,
    given: Mapping[str, Any] | None = None,
    *,
    places: Places,
) -> AgentDefinitions:
    """Return the definitions of a session, given those of `--agents`; no file is read before somebody asks for one."""
    first = [Found(definition) for definition in given_definitions(given or {})]
    users = places_of_user(places.home or user_home / ".panpan", user_home)
    trust = places.trust
    projects = places_of_project(project_root, cwd, users=users)

    def load() -> _Loaded:
        loaded = _Loaded()
        for one in first:
            loaded.add(one)
        if trust.is_trusted:
            _add_places(loaded, projects, trust)
        _add_places(loaded, users, trust)
        of_plugins, problems = plugin_definitions(places)
        loaded.problems += problems
        for definition in of_plugins:
            loaded.add(Found(definition, is_bound=True))
        for definition in shipped_definitions():
            loaded.add(Found(definition))
        if not trust.is_trusted:
            _add_untrusted(loaded, projects, trust)
        return loaded

    return AgentDefinitions(load)


COMMAND_LINE = "--agents"


def given_definitions(given: Mapping[str, Any]) -> Sequence[AgentDefinition]:
    """Return the definitions of the command line, in their order."""
    return [_definition(name, said) for name, said in given.items()]


def _definition(name: str, said: Any) -> AgentDefinition:
    if not isinstance(said, Mapping):
        raise ConfigError(f"--agents: {printable(name)!r} is not a JSON object; write one such as {AGENTS_EXAMPLE}")
    prompt = said.get("prompt", "")
    apart = ("prompt", "hooks")
    head = {key: Entry(_value(value)) for key, value in said.items() if key not in apart and value is not None}
    head["name"] = Entry(name)
    definition, problems = definition_from(head, prompt if isinstance(prompt, str) else "", COMMAND_LINE)
    if definition is None:
        wrong = next(problem.text for problem in problems if problem.is_error)
        raise ConfigError(printable(f"--agents: {name[:100]}: {wrong}"))
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
            definition, _ = read_text(text, SHIPPED, Place(Path(file.name)), file.name.removesuffix(".md"))
            if definition is not None:
                definitions.append(definition)
    return definitions


def _folder() -> Traversable:
    package = files("panpan")
    installed = package.joinpath("_shipped", "agents")
    checkout = Path(str(package)).parent / "agents"
    return checkout if checkout.is_dir() and not installed.is_dir() else installed


def _add_untrusted(loaded: _Loaded, places: Sequence[Place], trust: ProjectTrust) -> None:
    """Add definitions that take nobody's place, and note those that would."""
    stronger, hidden = dict(loaded.found), len(loaded.hidden)
    _add_places(loaded, places, trust)
    for found in loaded.hidden[hidden:]:
        name = found.definition.name
        if name in stronger and name not in loaded.held_back:
            other = stronger[name].definition
            if found.definition != replace(other, source=found.definition.source):
                loaded.held_back.append(name)


def plugin_definitions(places: Places) -> tuple[Sequence[AgentDefinition], Sequence[Problem]]:
    """Return the definitions of plug-ins, and what is wrong with them."""
    unread: list[str] = []
    found: list[AgentDefinition] = []
    all_problems: list[Problem] = []
    for file in places.files(("agents",), unread):
        path = Path(file.name)
        text = file.data.decode(errors="replace")
        definition, problems = read_text(text, file.name, Place(path.parent), path.stem)
        all_problems += problems
        if definition is not None and definition.hooks:
            text = "its hooks do not run, since those of a plug-in are in hooks/hooks.json"
            all_problems.append(Problem(text, is_error=False, source=file.name))
        if definition is not None and file.plugin is not None:
            found.append(replace(definition, name=f"{file.plugin.name}:{definition.name}", hooks=b""))
    return found, [*all_problems, *map(Problem, unread)]


def _add_places(loaded: _Loaded, places: Sequence[Place], trust: ProjectTrust) -> None:
    for place in places:
        sources: dict[str, str] = {}
        for file in read_place(place):
            loaded.problems += file.problems
            if file.definition is None:
                continue
            name = file.definition.name
            if name in sources:
                text = f"{sources[name]} defines {name}, too, and that one counts"
                loaded.problems.append(Problem(text, is_error=False, source=str(file.path)))
            sources.setdefault(name, str(file.path))
            loaded.add(_believed(file, file.definition, place, trust, loaded.problems))


def _believed(
    file: ReadFile, definition: AgentDefinition, place: Place, trust: ProjectTrust, problems: list[Problem]
) -> Found:
    if place.within is None:
        return Found(definition, is_bound=not place.is_for_panpan)
    if trust.believed.get(str(file.path.relative_to(place.within))) == file.data:
        return Found(definition, is_bound=True)
    why = (
        "only a file in .panpan/agents at the top may say it"
        if trust.is_trusted
        else "you have not trusted the project"
    )
    if definition.hooks:
        text = f"its hooks do not run: {why}"
        problems.append(Problem(text, is_error=False, source=definition.source))
        definition = replace(definition, hooks=b"")
    if definition.model.name != "inherit":
        text = f"its model {definition.model.name} does not count: {why}"
        problems.append(Problem(text, is_error=False, source=definition.source))
        definition = replace(definition, model=replace(definition.model, name="inherit"))
    if (definition.run.max_turns or 0) > MAX_ROUNDS_OF_PROJECT:
        text = f"of its {definition.run.max_turns:,} rounds {MAX_ROUNDS_OF_PROJECT} count: {why}"
        problems.append(Problem(text, is_error=False, source=definition.source))
        definition = replace(definition, run=replace(definition.run, max_turns=MAX_ROUNDS_OF_PROJECT))
    return Found(definition, is_bound=True)
