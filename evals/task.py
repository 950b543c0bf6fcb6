"""A task: its workspace, its prompt, and a check of the result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a trial before it is judged."""

    folder: Path
    answer: str
    """The model's last reply."""
    commands: tuple[str, ...]
    """Commands that it ran with Bash and that succeeded."""
    calls: int
    """Number of tool calls."""

    def text(self, name: str) -> str | None:
        """Return the contents of a file; None if there is none."""
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do.

    Only the files of the task may change. A trial in which any other file was changed, added or removed has failed,
    whatever `passes` returns.
    """

    kind: str
    prompt: str
    files: Mapping[str, str]
    passes: Callable[[Outcome], bool]
    may_change: frozenset[str] = frozenset()
    """Names of the files that the task changes or makes."""

    def write(self, folder: Path) -> None:
        """Make the workspace."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def has_passed(self, outcome: Outcome) -> bool:
        """Return True if the task was done, and nothing else was changed."""
        return self._left_alone(outcome.folder) and self.passes(outcome)

    def _left_alone(self, folder: Path) -> bool:
        there = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and not {"__pycache__", ".pytest_cache"} & set(path.parts)
        }
        before = {name: text.encode() for name, text in self.files.items()}
        return {name: data for name, data in there.items() if name not in self.may_change} == {
            name: data for name, data in before.items() if name not in self.may_change
        }
