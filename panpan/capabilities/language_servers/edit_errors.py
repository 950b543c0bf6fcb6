"""Tells the model of the errors that its edits have brought, with the result of the edit or as soon as they are known.

The rule: an edit never fails or waits for long because of a server. What is not known after a second is told later, and
keeps the turn going; what a server says is data of another and bounded.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from panpan.capabilities.language_servers.code_queries import Problem, problem_of
from panpan.capabilities.language_servers.documents import source_text
from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.capabilities.language_servers.wire import lines_of
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.errors import ToolError
from panpan.system.text.terminal_text import clean_line, printable
from panpan.types.content import DiffDisplay, for_model
from panpan.types.dataclass import dataclass
from panpan.types.events import Output
from panpan.types.messages import AssistantMessage, SystemReminder, strip_tags

if TYPE_CHECKING:
    from panpan.capabilities.language_servers.documents import SyncedDocuments
    from panpan.capabilities.language_servers.wire import Diagnostic


# An error is identified by its message and the text of its line, so lines that only moved bring nothing new. On a new
# line every error is new, whatever else was wrong before.

log = logging.getLogger(__name__)

_LONGEST_S = 60.0
"""Seconds after which a look is given up."""


@dataclass(frozen=True, slots=True)
class _Text:
    """A text, and what a server finds wrong with it."""

    text: str
    found: Sequence["Diagnostic"]
    is_in_place: bool = False
    """True if no line has moved. Errors are then identified by line, since a message may contain the changed name."""


class EditDiagnostics:
    """Looks at one file before and after a call has changed it; `run` does so beside the call.

    `before`: what it said before the call; None where there was none. `is_rename`: True if the call gives something
    another name and does nothing else: lines change, and what is wrong with them need not be new.
    """

    def __init__(self, path: Path, before: str | None, *, is_rename: bool = False) -> None:
        self.path = path
        self.told = anyio.Event()
        """Set when errors are known, or never will be; more may follow."""
        self.done = anyio.Event()
        """Set when no more follow."""
        self.new_errors: Sequence[Problem] = ()
        """New errors that are known so far; empty if no server could tell."""
        self.server = ""
        self._before = before
        self._is_rename = is_rename
        self._after: str | None = None
        self._changed = anyio.Event()

    def changed(self, after: str | None) -> None:
        """Take the text of the file after the call; None: there is nothing to look at."""
        self._after = after
        self._changed.set()

    async def run(self, servers: LanguageServers) -> None:
        """Ask about both texts, the first while the call still runs."""
        try:
            with anyio.move_on_after(_LONGEST_S):
                await self._look(servers)
        except ToolError as exc:  # the user sees the servers' states; the edit itself has succeeded
            log.debug("no errors of %s: %s", self.path, exc)
        except Exception:  # it runs beside the session, and must not end that
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

    async def _look_back(self, texts: "SyncedDocuments", before: str, after: str) -> None:
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
        await texts.opened(self.path)  # to know everything about it before its next change


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
    """Return the errors, each with a key that identifies it."""
    lines = lines_of(text.text)

    def known_by(found: "Diagnostic") -> tuple[str, str]:
        at = found.range.start.line
        if text.is_in_place:
            return "", str(at)  # the message may contain the name, too
        return found.message, lines[at].strip() if at < len(lines) else ""

    return [(known_by(found), problem_of(found)) for found in text.found if found.is_error]


MAX_ERRORS = 20
"""Most errors that are told of one file."""
WAIT_S = 1.0

_MAX_FILES = 5
"""Most files of one call that are looked at."""
_MAX_MESSAGE_CHARS = 300
_MAX_LATE = 20

_NEW = "New errors in {path} after this change, as the language server {server} reports them; fix them:"
_LATE = "New errors in {path} after your change of it, as the language server {server} reports them; fix them:"


@dataclass(frozen=True, slots=True)
class _Late:
    """A look that goes on although the result of its call is told."""

    look: EditDiagnostics
    shown: str
    known: frozenset[Problem]


class EditErrors(Hook):
    """Looks at the files that calls of the file tools change.

    `wait_s`: seconds by which the result of a call is held up at most.
    """

    def __init__(self, servers: LanguageServers, *, wait_s: float = WAIT_S) -> None:
        self._servers = servers
        self._wait_s = wait_s
        self._looks: dict[str, Sequence[EditDiagnostics]] = {}
        self._late: list[_Late] = []

    async def before_effect(self, call: ToolCall) -> None:
        if not (self._servers.is_trusted and call.tool.notes_changes):
            return
        paths = [path for path in _changed_paths(call) if self._servers.kind_for(path) is not None]
        looks = [
            EditDiagnostics(path, await to_thread.run_sync(_text_of, path), is_rename=call.tool.only_renames)
            for path in paths[:_MAX_FILES]
        ]
        if looks:
            self._looks[call.tool_use_id] = looks
        for look in looks:
            self._servers.start_soon(partial(look.run, self._servers))

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        looks = self._looks.pop(call.tool_use_id, ())
        if not looks:
            return output
        for look in looks:
            look.changed(None if output.is_error else await to_thread.run_sync(_text_of, look.path))
        with anyio.move_on_after(self._wait_s):
            for look in looks:
                await look.told.wait()
        if output.is_error:
            return output
        told, notes = [], []
        for look in looks:
            shown, errors = printable(call.context.paths.shown(look.path)), look.new_errors
            if errors:
                told.append(_told(_NEW, shown, look.server, errors))
                notes.append(_noted(shown, look.server, errors))
            if not look.done.is_set():
                self._late = [*self._late, _Late(look, shown, frozenset(errors))][-_MAX_LATE:]
        if not told:
            return output
        blocks = (*output.blocks, for_model("\n".join(told)))
        display = output.display
        if isinstance(display, DiffDisplay):
            display = display.model_copy(update={"notes": (*display.notes, *notes)})
        return Output(blocks, display, is_error=output.is_error)

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        return self._come_since()

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        return self._come_since()  # so that the turn continues even if the model thinks that it is done

    def _come_since(self) -> Sequence[Addition]:
        """Return, once, the errors that came too late for the result of their call."""
        done = [late for late in self._late if late.look.done.is_set()]
        self._late = [late for late in self._late if late not in done]
        reminders = []
        for late in done:
            if errors := [error for error in late.look.new_errors if error not in late.known]:
                text = strip_tags(_told(_LATE, late.shown, late.look.server, errors))
                reminders.append(SystemReminder(text=text, cause=f"errors:{late.look.path.name}", priority="must"))
        return reminders

    async def turn_ended(self, conversation: Conversation) -> None:
        for look in (look for looks in self._looks.values() for look in looks):
            look.changed(None)  # left over from interrupted calls
        self._looks.clear()


def _changed_paths(call: ToolCall) -> Sequence[Path]:
    """Return the canonical files that a call is about to change, as far as it names them."""
    paths = call.context.paths
    found: dict[Path, None] = {}
    for path in call.effects.writes:
        try:
            found[paths.resolve(path, access="write")] = None
        except ToolError:  # the call itself reports it
            continue
    return tuple(found)


def _text_of(path: Path) -> str | None:
    """Return the text of a file; None if there is no file, or none that a server could read."""
    try:
        return source_text(path)
    except ToolError:
        return None


def _told(head: str, path: str, server: str, errors: Sequence[Problem]) -> str:
    lines = [f"  {_line(problem)}" for problem in errors[:MAX_ERRORS]]
    if (more := len(errors) - MAX_ERRORS) > 0:
        lines.append(f"  ... and {more:,} more")
    return "\n".join([head.format(path=path, server=server), *lines])


def _noted(path: str, server: str, errors: Sequence[Problem]) -> str:
    """Return the note for the user: the number of errors, and the first of them."""
    count = "1 new error" if len(errors) == 1 else f"{len(errors):,} new errors, the first"
    return f"{path}: {count} ({server}): {_line(errors[0])}"


def _line(problem: Problem) -> str:
    message = clean_line(problem.message)
    cut = message if len(message) <= _MAX_MESSAGE_CHARS else f"{message[:_MAX_MESSAGE_CHARS]}…"
    code = clean_line(problem.code)[:60]
    return f"line {problem.line}: {cut}{f' ({code})' if code else ''}"
