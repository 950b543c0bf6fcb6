"""One trial: a workspace, what is asked for, and how a program tells whether it was done."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial left behind."""

    folder: Path
    answer: str
    """The model's last words."""
    commands: tuple[str, ...]
    """What it ran with Bash and what succeeded."""
    calls: int
    """Tools that it called."""

    def text(self, name: str) -> str | None:
        """Return the content of a file; None where there is none."""
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do.

    Only what the task is about may change: a trial in which any other file changed, came or went has failed, whatever
    `passes` says.
    """

    kind: str
    prompt: str
    files: Mapping[str, str]
    passes: Callable[[Outcome], bool]
    may_change: frozenset[str] = frozenset()
    """Names of the files that the task is to change or make."""

    def write(self, folder: Path) -> None:
        """Make the workspace."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def has_passed(self, outcome: Outcome) -> bool:
        """Return whether the task was done, and nothing else."""
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
