"""Parser of definitions: the keys that exist and the values that each may have.

The keys are those of Claude Code (https://code.claude.com/docs/en/sub-agents), and panpan's limits.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import cast, get_args

from panpan.system.text.front_matter import Entry, Value
from panpan.system.text.terminal_text import printable
from panpan.types.agent import AgentAccess, AgentDefinition, AgentModel, AgentRun, Isolation, SpendingLimits
from panpan.types.dataclass import dataclass
from panpan.types.llm import Sampling
from panpan.types.pattern import compile_late
from panpan.types.permission import PermissionMode, is_permission_mode


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that whoever wrote a definition should know."""

    text: str
    """Lower case, no full stop; may hold text of the file."""
    line: int = 0
    """From 1; 0: not about one line."""
    is_error: bool = True
    """True if the definition cannot be used."""
    source: str = ""

    @property
    def place(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.text}" if self.source else self.text)


MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 4_000
"""The model is told all descriptions with every request."""
MAX_MODEL_CHARS = 200

COLORS = ("red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan")
KEYS = (
    "name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "background", "isolation",
    "color", "maxBudgetUsd", "maxTokens", "maxSeconds", "maxCalls", "temperature", "top_p", "top_k", "hooks",
    "mcpServers",
)  # fmt: skip

_KEYS_OF_OTHERS = frozenset({"skills", "memory", "effort", "initialPrompt"})
_MODES_OF_OTHERS = frozenset({"manual", "delegate"})
_NAME = compile_late(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")


def definition_from(
    head: Mapping[str, Entry], prompt: str, source: str
) -> tuple[AgentDefinition | None, list[Problem]]:
    """Return the definition, None where it cannot be used, and the problems. `head` has panpan's keys."""
    fields = Fields(head)
    name = _name(fields)
    description = _description(fields)
    if not prompt.strip():
        fields.problems.append(Problem("there is no prompt: write it below the head of the file"))
    # In the order of `KEYS`, since the first problem is reported if none has a line.
    tools, disallowed, model, mode = _tools(fields), _disallowed(fields), _model(fields), _mode(fields)
    max_turns, background, isolation = (fields.whole_number("maxTurns"), fields.is_on("background"), _isolation(fields))
    color, limits, sampling = _color(fields), _limits(fields), _sampling(fields)
    definition = AgentDefinition(
        name,
        description,
        prompt.strip(),
        AgentAccess(tools, disallowed, mode),
        AgentModel(model, sampling),
        AgentRun(max_turns, background, isolation, limits),
        color,
        source=source,
    )
    fields.problems += _notes_on_keys(head)
    is_usable = not any(problem.is_error for problem in fields.problems)
    return (definition if is_usable else None), sorted(fields.problems, key=lambda problem: problem.line)


_YES = frozenset({"true", "yes", "on"})
_NO = frozenset({"false", "no", "off", ""})


_NOTHING = Entry("")


class Fields:
    """Reads the values of one head; collects problems, raises nothing."""

    def __init__(self, head: Mapping[str, Entry]) -> None:
        self.problems: list[Problem] = []
        self._head = head

    def __contains__(self, key: str) -> bool:
        return key in self._head

    def line(self, key: str) -> int:
        return self._head.get(key, _NOTHING).line

    def value(self, key: str) -> Value:
        return self._head.get(key, _NOTHING).value

    def text(self, key: str) -> str:
        value = self.value(key)
        if isinstance(value, str):
            return value.strip()
        self.fail(key, f"{key} has to be a text")
        return ""

    def is_on(self, key: str) -> bool:
        text = self.text(key).lower()
        if text not in _YES | _NO:
            self.fail(key, f"{key} has to be true or false, and not {text[:40]!r}")
        return text in _YES

    def whole_number(self, key: str) -> int | None:
        """Return a whole number of 1 or more; None: not given."""
        number = self.number(key, kind="a whole number of 1 or more")
        if number is None:
            return None
        if number != int(number) or number < 1:
            self.fail(key, f"{key} has to be a whole number of 1 or more")
        return int(number)

    def number(self, key: str, *, kind: str = "", least: float | None = None, most: float = math.inf) -> float | None:
        """Return a number above 0, or from `least` on; None: not given. `kind` names what it has to be."""
        lower = "a number above 0" if least is None else f"a number from {least:g} on"
        kind = kind or (lower if most == math.inf else f"{lower}, {most:g} at most")
        text = self.text(key)
        if not text:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number) and (number > 0 if least is None else number >= least) and number <= most:
            return number
        self.fail(key, f"{key} has to be {kind}, and not {text[:40]!r}")
        return None

    def fail(self, key: str, text: str) -> None:
        """Note an error: the definition cannot be used."""
        self.problems.append(Problem(text, self.line(key)))

    def note(self, key: str, text: str) -> None:
        """Note a key without effect."""
        self.problems.append(Problem(text, self.line(key), is_error=False))


EVERY_TOOL = frozenset({"*", "all", "All tools"})

_OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "Agent": "Task",
        "BashOutput": "TaskOutput",
        "AgentOutput": "TaskOutput",
        "KillShell": "TaskStop",
        "KillBash": "TaskStop",
    }
)

_WORD = compile_late(r"[^,()]+|[,()]")


def tool_names(value: Value) -> tuple[str, ...]:
    """Return the names in a value, each as panpan calls the tool."""
    texts = _split(value) if isinstance(value, str) else tuple(value)
    names = (name for text in texts if (name := text.strip().strip("\"'").strip()))
    return tuple(dict.fromkeys(_OTHER_NAMES.get(name, name) for name in names))


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth = [""], 0
    for word in _WORD.findall(text):
        depth = max(0, depth + (word == "(") - (word == ")"))
        if word == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += word
    return parts


def given_tools(names: Iterable[str]) -> tuple[str, ...] | None:
    """Return the names under `tools` that give a whole tool; None: every tool."""
    names = tuple(names)
    return None if EVERY_TOOL & set(names) else tuple(name for name in names if "(" not in name)


def removed_tools(names: Iterable[str]) -> tuple[str, ...]:
    """Return the tools that names under `disallowedTools` take away."""
    whole = (name.partition("(")[0].strip() for name in names)
    return tuple(dict.fromkeys("*" if name in EVERY_TOOL else _OTHER_NAMES.get(name, name) for name in whole if name))


def notes_on_parts(names: Iterable[str], *, are_given: bool, line: int) -> Iterator[Problem]:
    """Yield a note on each tool that is named in part only."""
    for name in names:
        if "(" in name:
            whole = name.partition("(")[0].strip()
            effect = f"{whole} is not given at all" if are_given else f"all of {whole} is taken away"
            yield Problem(
                f"{name} names a part of a tool, so {effect}; say it in a permission rule", line, is_error=False
            )


def notes_on_tools(definition: AgentDefinition, known: Collection[str]) -> Iterator[Problem]:
    """Yield a note on each tool that does not exist."""
    names = (*(definition.access.tools or ()), *definition.access.disallowed_tools)
    yield from notes_on_unknown(names, known, source=definition.source)


def notes_on_tools_in(head: Mapping[str, Entry], known: Collection[str], source: str) -> Iterator[Problem]:
    """Yield the same for a head, with lines, whether the definition can be used or not."""
    for key, counted in (("tools", given_tools), ("disallowedTools", removed_tools)):
        if key in head and not isinstance(value := head[key].value, Mapping):
            names = counted(tool_names(value)) or ()
            yield from notes_on_unknown(names, known, line=head[key].line, source=source)


def notes_on_unknown(
    names: Iterable[str], known: Collection[str], *, line: int = 0, source: str = ""
) -> Iterator[Problem]:
    """Yield a note on each name that no tool has."""
    from difflib import get_close_matches

    lower = {name.casefold(): name for name in known}
    for name in names:
        meant = name.casefold()
        if any(fnmatchcase(tool, meant) for tool in lower) or name.startswith("mcp__"):
            continue
        close = get_close_matches(meant, lower, n=1, cutoff=0.75)
        advice = f"; did you mean {lower[close[0]]}?" if close else ""
        yield Problem(f"there is no tool {name}, so it means nothing{advice}", line, is_error=False, source=source)


def name_problem(name: str) -> str:
    """Return the problem with a name; empty: none."""
    if not name:
        return "there is no name"
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        return f"the name has to be letters, digits and dashes, {MAX_NAME_CHARS} at most, such as code-reviewer"
    return ""


def _name(fields: Fields) -> str:
    name = fields.text("name")
    if problem := name_problem(name):
        fields.fail("name", problem)
    return name


def _description(fields: Fields) -> str:
    description = fields.text("description")
    if not description:
        fields.fail("description", "there is no description, which tells the model when to use it")
    if len(description) > MAX_DESCRIPTION_CHARS:
        fields.note("description", f"the description is cut after {MAX_DESCRIPTION_CHARS:,} characters")
        return description[: MAX_DESCRIPTION_CHARS - 1] + "…"
    return description


def _tools(fields: Fields) -> tuple[str, ...] | None:
    if "tools" not in fields:
        return None
    value = fields.value("tools")
    if isinstance(value, Mapping):
        fields.fail("tools", "tools has to be names with commas between them, or a list")
        return ()
    if value == "":
        fields.note("tools", "tools is empty, so it has every tool; `tools: []` means none")
        return None
    names = tool_names(value)
    fields.problems += notes_on_parts(names, are_given=True, line=fields.line("tools"))
    return given_tools(names)


def _disallowed(fields: Fields) -> tuple[str, ...]:
    value = fields.value("disallowedTools")
    if isinstance(value, Mapping):
        fields.fail("disallowedTools", "disallowedTools has to be names with commas between them, or a list")
        return ()
    names = tool_names(value)
    fields.problems += notes_on_parts(names, are_given=False, line=fields.line("disallowedTools"))
    return removed_tools(names)


def _model(fields: Fields) -> str:
    model = fields.text("model") or "inherit"
    if len(model) > MAX_MODEL_CHARS or not model.isprintable():
        fields.fail("model", "model is not the name of a model")
    return model


def _mode(fields: Fields) -> PermissionMode | None:
    mode = fields.text("permissionMode")
    if not mode or is_permission_mode(mode):
        return mode or None
    if mode in _MODES_OF_OTHERS:
        fields.note("permissionMode", f"panpan has no mode {mode}; the session's mode applies")
    else:
        modes = ", ".join(get_args(PermissionMode))
        fields.fail("permissionMode", f"there is no permission mode {mode[:40]!r}; there are {modes}")
    return None


def _isolation(fields: Fields) -> Isolation | None:
    isolation = fields.text("isolation")
    if isolation in get_args(Isolation):
        return cast(Isolation, isolation)
    if isolation not in ("", "none"):
        fields.fail("isolation", f"isolation has to be worktree, and not {isolation[:40]!r}")
    return None


def _color(fields: Fields) -> str:
    color = fields.text("color")
    if color and color not in COLORS:
        fields.note("color", f"there is no colour {color[:40]!r}; there are {', '.join(COLORS)}")
    return color if color in COLORS else ""


def _limits(fields: Fields) -> SpendingLimits:
    return SpendingLimits(
        usd=fields.number("maxBudgetUsd"),
        tokens=fields.whole_number("maxTokens"),
        seconds=fields.number("maxSeconds"),
        calls=fields.whole_number("maxCalls"),
    )


def _sampling(fields: Fields) -> Sampling:
    return Sampling(
        temperature=fields.number("temperature", least=0, most=2),
        top_p=fields.number("top_p", most=1),
        top_k=fields.whole_number("top_k"),
    )


def _notes_on_keys(head: Mapping[str, Entry]) -> Iterator[Problem]:
    """Yield a note on each unused key that its author may expect to work."""
    for key, entry in head.items():
        if key in _KEYS_OF_OTHERS:
            yield Problem(f"panpan does not use {key}", entry.line, is_error=False)
        elif key not in KEYS:
            from difflib import get_close_matches

            for close in get_close_matches(key[:MAX_NAME_CHARS], KEYS, n=1, cutoff=0.8):
                yield Problem(f"there is no key {key}; did you mean {close}?", entry.line, is_error=False)
