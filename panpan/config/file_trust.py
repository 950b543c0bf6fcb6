"""Questions about trust in a file that is code, since it names commands that run.

The rule: the user's yes covers the bytes that were read for the question, and they have seen all that would run. Every
character in a question is visible.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeAlias

from anyio import to_thread

from panpan.config.keys import shown
from panpan.config.trust import Changed, Trusted, TrustState, Untrusted
from panpan.errors import ConfigError
from panpan.system.text.terminal_text import escape_invisible
from panpan.types.dataclass import dataclass

MAX_LINES = 500
MAX_CHARS = 40_000
"""Most characters of a question; more would scroll away before it is read."""

Ask: TypeAlias = Callable[[str], Awaitable[bool | None]]
"""Asks a question with the answers yes and no; None: the user did not answer."""


def trust_text(said: Iterable[str], runs: Iterable[str]) -> str:
    """Return what a question shows.

    Args:
        said: Lines about the file.
        runs: What it runs; an item may have several lines.
    """
    return "\n".join(escape_invisible(line) for line in (*said, "It runs:", *_indented(runs)))


def lines_about(file: str, state: TrustState) -> Iterator[str]:
    """Yield lines that say if a file is trusted, with the changes since."""
    match state:
        case Trusted():
            yield f"{file} is trusted."
        case Changed(changes):
            yield f"{file} changed since you trusted it:"
            for change in changes:
                yield f"  {change.kind}: {shown(change.name)}"
                yield from (f"    {line}" for line in change.lines)
        case Untrusted(problem=problem):
            reason = f", since {shown(problem)}" if problem else ""
            yield f"{file} is not trusted{reason}. It is code: it names commands and flags."


def problem_of(name: str, state: TrustState) -> str:
    """Return why a file that is not trusted has to be asked about."""
    return f"{name} changed since you trusted it" if isinstance(state, Changed) else f"{name} is not trusted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustQuestion:
    """A question about trust."""

    place: str
    """Folder or file for people."""
    what: str
    """Such as "this campaign"."""
    problem: str
    """Reason for the question."""
    text: str
    """As from `trust_text`."""
    keep: Callable[[bool], None]
    """Keeps the answer."""

    async def require_yes(self, ask: Ask | None) -> None:
        """Ask, and return if the answer is yes.

        Args:
            ask: Asks the user; None without a terminal.

        Raises:
            ConfigError: It is not trusted, or the answer cannot be kept; the error says what to do.
        """
        if len(self.text) > MAX_CHARS or self.text.count("\n") > MAX_LINES:
            raise ConfigError(
                f"{self.place} is not trusted and runs too much to ask about; read its files, then run it with --trust"
            )
        if ask is None:
            raise ConfigError(
                f"{self.place}: {self.problem}; run it once on a terminal, which asks, or add --trust for this run"
            )
        answer = await ask(f"{self.text}\nDo you trust {self.what}?")
        if answer is not None:
            await to_thread.run_sync(self.keep, answer)
        if not answer:
            raise ConfigError(f"{self.place} is not trusted, so nothing ran; change it, or answer yes")


def _indented(items: Iterable[str]) -> Iterator[str]:
    for item in items:
        first, *others = item.split("\n")
        yield f"  {first}"
        yield from (f"    {line}" for line in others)
