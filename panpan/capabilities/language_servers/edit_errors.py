"""Tells the model of the errors that its edits have brought, with the result of the edit or as soon as they are known.

The rule: an edit never fails or waits for long because of a server. What is not known after a second is told later, and
keeps the turn going; what a server says is data of another and bounded.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from panpan.capabilities.language_servers.code_intelligence import Problem
from panpan.capabilities.language_servers.edit_look import EditLook
from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.core.our_tags import untagged
from panpan.errors import ToolError
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.file_text import decode_file
from panpan.system.text.terminal_text import clean_line, printable
from panpan.types.content import TextBlock
from panpan.types.dataclass import dataclass
from panpan.types.display import DiffDisplay
from panpan.types.messages import AssistantMessage, SystemReminder
from panpan.types.tool import Output

MAX_ERRORS = 20
"""Of one file."""
WAIT_S = 1.0

_MAX_FILES = 5
"""Of one call."""
_MAX_BYTES = 2_000_000
_MAX_MESSAGE_CHARS = 300
_MAX_LATE = 20

_NEW = "New errors in {path} after this change, as the language server {server} reports them; mend them:"
_LATE = "New errors in {path} after your change of it, as the language server {server} reports them; mend them:"


@dataclass(frozen=True, slots=True)
class _Late:
    """A look that goes on although the result of its call is told."""

    look: EditLook
    shown: str
    """The path as the model knows it."""
    known: frozenset[Problem]
    """The errors that it was told with the result."""


class EditErrors(Hook):
    """Looks at the files that calls of the file tools change.

    Args:
        servers: The session's.
        wait_s: Seconds by which the result of a call is held up at most.
    """

    def __init__(self, servers: LanguageServers, *, wait_s: float = WAIT_S) -> None:
        self._servers = servers
        self._wait_s = wait_s
        self._looks: dict[str, Sequence[EditLook]] = {}
        self._late: list[_Late] = []

    async def before_effect(self, call: ToolCall) -> None:
        if not (self._servers.is_trusted and call.tool.notes_changes):
            return
        paths = [path for path in _changed_paths(call) if self._servers.kind_for(path) is not None]
        looks = [
            EditLook(path, await to_thread.run_sync(_text_of, path), is_rename=call.tool.only_renames)
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
        blocks = (*output.blocks, TextBlock(text="\n".join(told)))
        display = output.display
        if isinstance(display, DiffDisplay):
            display = display.model_copy(update={"notes": (*display.notes, *notes)})
        return Output(blocks, display, is_error=output.is_error)

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        return self._come_since()

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        return self._come_since()  # so that the turn goes on, should the model think that it is done

    def _come_since(self) -> Sequence[Addition]:
        """Return what was not told with the result of its call, once."""
        done = [late for late in self._late if late.look.done.is_set()]
        self._late = [late for late in self._late if late not in done]
        reminders = []
        for late in done:
            if errors := [error for error in late.look.new_errors if error not in late.known]:
                text = untagged(_told(_LATE, late.shown, late.look.server, errors))
                reminders.append(SystemReminder(text=text, cause=f"errors:{late.look.path.name}", priority="must"))
        return reminders

    async def turn_ended(self, conversation: Conversation) -> None:
        for look in (look for looks in self._looks.values() for look in looks):
            look.changed(None)  # of a call that was interrupted
        self._looks.clear()


def _changed_paths(call: ToolCall) -> Sequence[Path]:
    """Return the canonical files that a call is about to change, as far as it names them."""
    paths = call.context.paths
    found: dict[Path, None] = {}
    for path in call.effects.writes:
        try:
            found[paths.resolve(path, access="write")] = None
        except ToolError:  # the call itself says so
            continue
    return tuple(found)


def _text_of(path: Path) -> str | None:
    """Return what a file says; None where there is none, or nothing that a server could read."""
    try:
        decoded = decode_file(read_regular_file(path, max_bytes=_MAX_BYTES))
    except ToolError:
        return None
    return None if decoded is None else decoded.readable


def _told(head: str, path: str, server: str, errors: Sequence[Problem]) -> str:
    lines = [f"  {_line(problem)}" for problem in errors[:MAX_ERRORS]]
    if (more := len(errors) - MAX_ERRORS) > 0:
        lines.append(f"  ... and {more:,} more")
    return "\n".join([head.format(path=path, server=server), *lines])


def _noted(path: str, server: str, errors: Sequence[Problem]) -> str:
    """Return what the user is told: how many there are, and the first of them."""
    count = "1 new error" if len(errors) == 1 else f"{len(errors):,} new errors, the first"
    return f"{path}: {count} ({server}): {_line(errors[0])}"


def _line(problem: Problem) -> str:
    message = clean_line(problem.message)
    cut = message if len(message) <= _MAX_MESSAGE_CHARS else f"{message[:_MAX_MESSAGE_CHARS]}…"
    code = clean_line(problem.code)[:60]
    return f"line {problem.line}: {cut}{f' ({code})' if code else ''}"
