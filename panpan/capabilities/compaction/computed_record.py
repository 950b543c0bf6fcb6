"""Record of the work in a session, computed from its calls and their results and never from a model's words.

It is computed from the whole conversation each time, so it stays complete over any number of compactions.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import field

from panpan.types.content import DiffDisplay, FileDiff, ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, strip_tags
from panpan.types.pattern import compile_late

_MOST_CHANGED, _MOST_READ, _MOST_COMMANDS, _MOST_REFUSED = 150, 60, 25, 10
"""Newest of each that are named; the rest is counted."""
_MOST_CHARS = 160

_TESTS = compile_late(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|cargo\s+(?:\w+\s+)*(?:test|nextest)|go\s+test"
    r"|(?:npm|yarn|pnpm|bun|deno|make|just|rake|gradle|gradlew|mvn|dotnet|mix|swift|zig\s+build)\s+(?:run\s+|-\S+\s+)*"
    r"(?:test|tests|check|verify)\b)"
)
_TOTALS = compile_late(
    r"\b\d+\s+(?:passed|failed|passing|failing|tests?|errors?)\b|\btests?:|^(?:OK|FAILED|ok|FAIL)\b", re.I
)
_EXIT = compile_late(r"\[(exit code \d+|timed out)\b")


@dataclass(slots=True)
class CommandRuns:
    """Runs of one command, and how the last ended."""

    times: int = 0
    is_error: bool = False
    ending: str = ""
    """End of the last run, such as "exit code 1"."""
    line: str = ""
    """Its last line, or how its tests ended."""


@dataclass(slots=True)
class ComputedRecord:
    """Changes, reads, commands and refusals of a session; in each the newest is last."""

    changed: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    """Lines added and removed of each file, and "new" or "deleted"."""
    read: dict[str, None] = field(default_factory=dict)
    """Files that were read and not changed."""
    commands: dict[str, CommandRuns] = field(default_factory=dict)
    refused: dict[str, None] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """Counts; empty where nothing was done."""
        counts = [
            (len(self.changed), "file changed", "files changed"),
            (len(self.read), "file read", "files read"),
            (len(self.commands), "command", "commands"),
            (len(self.refused), "call refused", "calls refused"),
        ]
        return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in counts if count)

    def text(self, most_chars: int) -> str:
        """Return the text for a model; where it is too long, older parts are only counted."""
        for share in (1.0, 0.5, 0.25, 0.1, 0.0):
            text = "\n".join(self._lines(share))
            if len(text) <= most_chars:
                return text
        return text[:most_chars]

    def _lines(self, share: float) -> Iterable[str]:
        if self.changed:
            files = [f"{path} ({_size(*change)})" for path, change in self.changed.items()]
            yield _listed("Files changed", files, _MOST_CHANGED, share)
        if self.read:
            yield _listed("Files read", list(self.read), _MOST_READ, share)
        if self.commands:
            told = [_told(command, run) for command, run in self.commands.items()]
            yield _listed("Commands, the newest last", told, _MOST_COMMANDS, share)
        if newest := self._newest_tests():
            command, run = newest
            yield f"Tests, when they were run last: {'failed' if run.is_error else 'passed'}: {_told(command, run)}"
        if self.refused:
            yield _listed("Not allowed by the user or their rules", list(self.refused), _MOST_REFUSED, share)

    def _newest_tests(self) -> tuple[str, CommandRuns] | None:
        return next(((name, run) for name, run in reversed(self.commands.items()) if _TESTS.search(name)), None)


def computed_record(messages: Sequence[Message]) -> ComputedRecord:
    """Return the record of a conversation."""
    record = ComputedRecord()
    uses: dict[str, ToolUseBlock] = {}
    for message in messages:
        match message:
            case AssistantMessage():
                uses.update((use.id, use) for use in message.tool_uses)
            case ToolResultMessage() if (use := uses.get(message.tool_use_id)) is not None:
                _add(record, use, message)
            case _:
                pass
    for path in record.changed:
        record.read.pop(path, None)
    return record


def _add(record: ComputedRecord, use: ToolUseBlock, result: ToolResultMessage) -> None:
    if isinstance(result.display, DiffDisplay):
        for file in result.display.files:
            before = record.changed.pop(file.path, (0, 0, ""))
            record.changed[file.path] = _joined(before, file)
    if result.is_error and result.text.startswith(f"{use.name} was not run"):
        argument = next((value for value in use.input.values() if isinstance(value, str)), "")
        record.refused.setdefault(_short(f"{use.name} {argument}"))
        return
    match use:
        case ToolUseBlock(name="Read", input={"file_path": str(path)}) if not result.is_error:
            record.read.pop(path, None)
            record.read[path] = None
        case ToolUseBlock(name="Bash", input={"command": str(command)}):
            runs = record.commands.pop(command, CommandRuns())
            runs.times += 1
            runs.is_error = result.is_error
            tells = result.is_error or _TESTS.search(command) is not None
            runs.ending, runs.line = _ending(result), _telling_line(result.text) if tells else ""
            record.commands[command] = runs
        case _:
            pass


def _joined(before: tuple[int, int, str], file: FileDiff) -> tuple[int, int, str]:
    state = "deleted" if file.is_deleted else "new" if file.is_new or before[2] == "new" else ""
    return before[0] + file.added, before[1] + file.removed, state


def _size(added: int, removed: int, state: str) -> str:
    return f"{state}, +{added} -{removed}" if state else f"+{added} -{removed}"


def _ending(result: ToolResultMessage) -> str:
    found = _EXIT.findall(result.text[-2_000:])
    return found[-1] if found else "failed" if result.is_error else "exit code 0"


def _telling_line(text: str) -> str:
    """Return the line that says how tests ended, or the last one."""
    lines = [line.strip() for line in text[-4_000:].splitlines() if line.strip() and not line.startswith("[")]
    totals = [line for line in lines if _TOTALS.search(line)]
    return _short((totals or lines or [""])[-1].strip("= "))


def _told(command: str, run: CommandRuns) -> str:
    times = f", {run.times} times" if run.times > 1 else ""
    line = f": {run.line}" if run.line else ""
    return f"{_short(command)} → {run.ending}{times}{line}"


def _listed(heading: str, items: Sequence[str], most: int, share: float) -> str:
    shown = items[-max(1, round(most * share)) :]
    older = len(items) - len(shown)
    more = [f"(and {older} before these)"] if older else []
    return strip_tags("\n".join([f"{heading}:", *(f"- {line}" for line in (*more, *shown))]))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_CHARS else f"{line[: _MOST_CHARS - 1]}…"
