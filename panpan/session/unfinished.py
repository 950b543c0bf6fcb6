"""Calls that were begun and never answered, since panpan ended meanwhile: what is known and said of each.

The rule: nothing that may have been done is done again by itself. Where the log and the files tell what became of a
call, that is its result; where they do not, only the user can know, and where nobody is there the session stops.

- Without a record `call_started`, or for a file tool without `file_changes`, a call changed nothing.
- For a file tool, the files are compared with both digests: each is as it was, as it was to be, or neither.
- A capability may know more: of a subagent, its own log tells.
- Anything else, such as a command, only the user knows. One that still runs is found by the mark in its environment.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import anyio
import anyio.to_thread

from panpan.core.conversation import NEVER_ANSWERED, NEVER_BEGUN, Conversation, error_result, repair_history
from panpan.core.tool import Tool
from panpan.core.tool_call import prepare_call
from panpan.errors import UnfinishedCallError
from panpan.session.log.fold import UnfinishedCall
from panpan.system.files.atomic_write import remove_leftovers
from panpan.system.processes.process_table import ProcessTree
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.events import IntendedChange
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import Choice, UserAsker, UserQuestion

Outcome: TypeAlias = Literal["finished", "not-run", "unclear"]
"""The user's word on a call: it did its work, it did not, or they do not know either."""

_CHOICES: Mapping[str, Outcome] = {"It finished": "finished", "It did not run": "not-run", "I do not know": "unclear"}
_MAX_TITLE_CHARS = 300
_WAIT_POLL_S = 0.2


class UnfinishedCalls:
    """Gives the calls that an earlier run left open their results.

    Args:
        calls: In the order of the reply.
        ask: Asks the user; None if nobody can be asked.
        outcome: Taken for the user's answer without asking.
        session_id: For the message if nobody can be asked; of a fork, that of the session it was made of.
        is_fork: True for a fork, which is made again the next time.
        known: Returns the result of a call of which another log tells what became of it, such as that of a subagent;
            called in a worker thread.
    """

    def __init__(
        self,
        calls: Sequence[UnfinishedCall] = (),
        *,
        ask: UserAsker | None = None,
        outcome: Outcome | None = None,
        session_id: str = "",
        is_fork: bool = False,
        known: Callable[[UnfinishedCall], ToolResultMessage | None] = lambda _: None,
    ) -> None:
        self._calls = tuple(calls)
        self._ask = ask
        self._outcome = outcome
        self._command = f"panpan -r {session_id}{' --fork-session' if is_fork else ''}"
        self._known = known
        self.have_stopped_a_turn = False
        """True if a turn could not begin, since their outcome is unknown."""

    @property
    def are_open(self) -> bool:
        """True if nothing became of them yet, so that the session did not go on."""
        return bool(self._calls)

    def forget(self) -> None:
        """Leave them as they are, as after a rewind to before them."""
        self._calls = ()

    async def settle(
        self,
        conversation: Conversation,
        tools: Mapping[str, Tool[Any]],
        record: Callable[[ToolResultMessage], None],
    ) -> None:
        """Put what is known of each into the conversation, once, and record it.

        Args:
            conversation: Holds a result for each that says that nothing is known.
            tools: Those of the session, by name, to name the calls.
            record: Writes a result into the log.

        Raises:
            UnfinishedCallError: Only the user knows the outcome of one, and cannot be asked; nothing has changed.
        """
        if not self._calls:
            return
        try:
            results = [await self._result(call, tools) for call in self._calls]
        except UnfinishedCallError:
            self.have_stopped_a_turn = True
            raise
        ids = {call.tool_use.id for call in self._calls}
        kept = [
            message
            for message in conversation.messages
            if not (isinstance(message, ToolResultMessage) and message.tool_use_id in ids)
        ]
        self._calls = ()
        conversation.replace(list(repair_history([*kept, *results])), conversation.compactions)
        for result in results:
            record(result)

    async def _result(self, call: UnfinishedCall, tools: Mapping[str, Tool[Any]]) -> ToolResultMessage:
        id_ = call.tool_use.id
        if (known := await anyio.to_thread.run_sync(self._known, call)) is not None:
            return known
        if not call.is_begun or (call.notes_changes and not call.changes):
            return error_result(id_, NEVER_BEGUN)
        if call.notes_changes:
            return await anyio.to_thread.run_sync(_told_by_files, id_, call.changes)
        outcome, words = await self._outcome_of(call, tools)
        return _told_by_user(id_, outcome, words)

    async def _outcome_of(self, call: UnfinishedCall, tools: Mapping[str, Tool[Any]]) -> tuple[Outcome, str]:
        """Return the user's answer and their own words; raise UnfinishedCallError if they cannot be asked."""
        what = _named(call.tool_use, tools)
        if await self._was_left_running(call, what):
            return "unclear", ""
        if self._outcome is not None:
            return self._outcome, ""
        if self._ask is None:
            raise UnfinishedCallError(
                f"panpan ended while {what} ran, and cannot know whether that finished. Look, then run "
                f"`{self._command}` on a terminal, or add --unfinished finished, not-run or unclear",
                kind="unfinished",
                question=f"panpan ended while this ran: {what}. Did it finish?",
                choices=get_args(Outcome),
            )
        choices = [
            Choice("It finished", "the model goes on from there"),
            Choice("It did not run", "the model may do it again"),
            Choice("I do not know", "the model looks first"),
        ]
        question = f"panpan ended while this ran: {what}. Did it finish?"
        chosen, words = await _answer(self._ask, question, choices)
        return _CHOICES.get(chosen, "unclear"), words

    async def _was_left_running(self, call: UnfinishedCall, what: str) -> bool:
        """Let the user say what becomes of a command that outlived panpan; return True if it was not waited for."""
        tree = ProcessTree(call.process_mark)
        running = await tree.look() if call.process_mark else []
        if not running:
            return False
        numbers = ", ".join(str(process.pid) for process in running)
        if self._ask is None:
            raise UnfinishedCallError(
                f"{what} was begun before panpan ended, and still runs (processes {numbers}); wait for it or end it, "
                f"then go on with `{self._command}`",
                kind="unfinished",
                question=f"Still running since panpan ended: {what} (processes {numbers}). Wait for it or end it.",
            )
        question = f"Still running since panpan ended: {what}. What should happen to it?"
        choices = [
            Choice("Wait for it", "then you are asked if it succeeded"),
            Choice("End it", f"ends {numbers}"),
            Choice("Let it run", "the model works while it runs"),
        ]
        chosen, _ = await _answer(self._ask, question, choices)
        if chosen == "Wait for it":
            while running:
                await anyio.sleep(_WAIT_POLL_S)
                running = await tree.look()
            return False
        if chosen == "End it":
            await tree.end()
        return True


async def _answer(ask: UserAsker, question: str, choices: Sequence[Choice]) -> tuple[str, str]:
    """Return the label that the user chose and what they add in their own words; both empty if they decline."""
    answers = await ask([UserQuestion("Unfinished", question, choices)])
    if not answers:
        return "", ""
    return answers[0].chosen[0] if answers[0].chosen else "", answers[0].text


def _told_by_files(tool_use_id: str, changes: Sequence[IntendedChange]) -> ToolResultMessage:
    """Return the result that the files show, and take away what the call left half-made; runs in a thread."""
    for folder in {change.path.parent for change in changes}:
        remove_leftovers(folder)
    by_state: dict[str, list[str]] = {"as the call was to leave them": [], "as they were before it": [], "neither": []}
    for change in changes:
        digest = _digest(change.path)
        states = ("as the call was to leave them", change.after), ("as they were before it", change.before)
        state = next((name for name, expected in states if digest == expected), "neither")
        by_state[state].append(str(change.path))
    done, before, neither = by_state.values()
    if not before and not neither:
        text = f"The session ended right after the call had done its work: changed {', '.join(done)}."
        return ToolResultMessage(result=ToolResultBlock(tool_use_id=tool_use_id, content=(TextBlock(text=text),)))
    if not done and not neither:
        return error_result(tool_use_id, NEVER_BEGUN)
    parts = [f"{state}: {', '.join(paths)}" for state, paths in by_state.items() if paths]
    text = "The session ended in the midst of the call. The files are now " + "; ".join(parts)
    return error_result(tool_use_id, f"{text}. Read them before you go on.")


def _digest(path: Path) -> str | None:
    """Return SHA-256 of a regular file, in hex; None if there is none, and what no digest is for other kinds."""
    try:
        if not path.is_file():
            return None if not path.exists() else ""
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _told_by_user(tool_use_id: str, outcome: Outcome, words: str) -> ToolResultMessage:
    if outcome == "finished":
        text = "The session ended while the call ran. The user says that it finished; what it printed is lost."
        return ToolResultMessage(result=ToolResultBlock(tool_use_id=tool_use_id, content=(TextBlock(text=text),)))
    if outcome == "not-run":
        return error_result(tool_use_id, f"The user says that it did not do its work. {NEVER_BEGUN}")
    said = f" The user says: {words}" if words else ""
    return error_result(tool_use_id, f"{NEVER_ANSWERED}{said}")


def _named(use: ToolUseBlock, tools: Mapping[str, Tool[Any]]) -> str:
    call = prepare_call(use, tools)
    title = call.tool.title(call.args) if call.tool is not None and call.args is not None else ""
    return clean_line(f"{use.name} ({title})" if title else use.name)[:_MAX_TITLE_CHARS]
