"""What one change of a file brings: the errors after it that were not there before.

The rule: an error is known by its words and the text of its line, so that lines that only moved bring nothing new. On
a line that was not there before, every error is new, whatever else was wrong before.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from panpan.capabilities.language_servers.code_intelligence import Problem
from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.capabilities.language_servers.wire import lines_of
from panpan.errors import ToolError
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.capabilities.language_servers.shown_texts import ShownTexts
    from panpan.capabilities.language_servers.wire import Diagnostic

log = logging.getLogger(__name__)

_LONGEST_S = 60.0
"""After which nobody cares any more."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A text, and what a server finds wrong with it."""

    text: str
    found: Sequence["Diagnostic"]
    is_in_place: bool = False
    """Whether each line is where it was, so that an error is known by that and not by words, which may have a name."""


class EditLook:
    """Looks at one file before and after a call has changed it; `run` does so beside the call.

    Args:
        path: The canonical file.
        before: What it said before the call; None where there was none.
        is_rename: Whether the call gives something another name and does nothing else: lines change, and what is wrong
            with them need not be new.
    """

    def __init__(self, path: Path, before: str | None, *, is_rename: bool = False) -> None:
        self.path = path
        self.told = anyio.Event()
        """Set when errors are known, or never will be; more may follow."""
        self.done = anyio.Event()
        """Set when no more follow."""
        self.new_errors: Sequence[Problem] = ()
        """As far as they are known; nothing where no server could tell."""
        self.server = ""
        """Which server has told them."""
        self._before = before
        self._is_rename = is_rename
        self._after: str | None = None
        self._changed = anyio.Event()

    def changed(self, after: str | None) -> None:
        """Take what the file says after the call; None: there is nothing to look at."""
        self._after = after
        self._changed.set()

    async def run(self, servers: LanguageServers) -> None:
        """Ask about both texts, the first while the call still runs."""
        try:
            with anyio.move_on_after(_LONGEST_S):
                await self._look(servers)
        except ToolError as exc:  # the servers' states tell the user; the edit has gone well without
            log.debug("no errors of %s: %s", self.path, exc)
        except Exception:  # it runs beside the session, which must not end for it
            log.exception("the look at %s failed", self.path)
        finally:
            self.told.set()
            self.done.set()

    async def _look(self, servers: LanguageServers) -> None:
        server = await servers.server_for(self.path)
        self.server = server.kind.name
        texts, before = server.texts, self._before or ""
        found_before = await texts.problems_before(self.path, before) if self._before is not None else ()
        await self._changed.wait()
        if self._after is None:
            return
        if found_before is None:
            await self._look_back(texts, before, self._after)
            return
        for look in (texts.problems,) if texts.is_asked else (texts.problems, texts.all_problems):
            found = await look(self.path, self._after)
            self.new_errors = self._new(before, found_before, self._after, found)
            self.told.set()

    def _new(
        self, before: str, found_before: Sequence["Diagnostic"], after: str, found: Sequence["Diagnostic"]
    ) -> Sequence[Problem]:
        return _new_errors(_Text(before, found_before, self._is_rename), _Text(after, found, self._is_rename))

    async def _look_back(self, texts: "ShownTexts", before: str, after: str) -> None:
        """Ask about the text after first: what was wrong before takes longer to know than a result can wait."""
        found: Sequence[Diagnostic] = ()
        for look in (texts.problems, texts.all_problems):
            found = await look(self.path, after)
            self.new_errors = () if self._is_rename else _on_new_lines(before, _Text(after, found))
            if self.new_errors:
                self.told.set()
        self.told.set()
        found_before = await texts.all_problems(self.path, before)
        self.new_errors = self._new(before, found_before, after, found)
        self.done.set()
        await texts.opened(self.path)  # so that all is known of it before it is changed again


def _on_new_lines(before: str, after: _Text) -> Sequence[Problem]:
    """Return the errors of a text on lines that another one had not."""
    known = {line.strip() for line in lines_of(before)}
    return _in_order(problem for (_, line), problem in _errors(after) if line not in known)


def _new_errors(before: _Text, after: _Text) -> Sequence[Problem]:
    """Return the errors of a text that another one had not."""
    known = Counter(key for key, _ in _errors(before))
    new: list[Problem] = []
    for key, problem in _errors(after):
        if known[key] > 0:
            known[key] -= 1
        else:
            new.append(problem)
    return _in_order(new)


def _in_order(problems: Iterable[Problem]) -> Sequence[Problem]:
    return sorted(problems, key=lambda problem: (problem.line, problem.column))


def _errors(text: _Text) -> Sequence[tuple[tuple[str, str], Problem]]:
    """Return the errors, each with what it is known by."""
    lines = lines_of(text.text)

    def known_by(found: "Diagnostic") -> tuple[str, str]:
        at = found.range.start.line
        if text.is_in_place:
            return "", str(at)  # its words may have the name, too
        return found.message, lines[at].strip() if at < len(lines) else ""

    return [(known_by(found), problem_of(found)) for found in text.found if found.is_error]


def problem_of(found: "Diagnostic") -> Problem:
    """Return what a server has found, in our words."""
    code = found.code if isinstance(found.code, str | int) else ""
    start = found.range.start
    return Problem(start.line + 1, start.character + 1, found.is_error, found.message, str(code))
