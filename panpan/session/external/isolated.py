"""Hooks, tools and other parts of capabilities from outside, so that an error in one costs that one and no turn.

A guard is the exception: where it fails, nothing is allowed any more, since it might have said no.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import CancelScope, Event, create_task_group, move_on_after

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.core.tool import Tool
from panpan.core.tool_executor import CLEANUP_S
from panpan.errors import ConfigError, ContextOverflowError, PanpanError
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.external.loading import failure
from panpan.session.log.fold import UnfinishedCall
from panpan.session.reminders import ReminderSource
from panpan.types.content import StatusItem
from panpan.types.events import Compacted, FileChange, Output, PermissionDecided, Verification, Waiting
from panpan.types.llm import ModelClient
from panpan.types.messages import (
    AssistantMessage,
    Compaction,
    CompactionTrigger,
    Message,
    SystemReminder,
    ToolResultMessage,
    UserMessage,
)
from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionQuestion, Reason, SandboxDenial

if TYPE_CHECKING:
    from panpan.session.command import Command, Terminal


ResultT = TypeVar("ResultT")

_NOTHING = type(None)

log = logging.getLogger(__name__)


class PrefixChangedError(Exception):
    """A hook changed messages that the model was sent before, so that nothing of them counts as known any more."""


class Isolation:
    """One capability's credit: after its first error it is out of the session; a guard then denies every call."""

    def __init__(self, capability: str, *, fails_closed: bool, warn: Callable[[str], None]) -> None:
        self.capability = capability
        self.fails_closed = fails_closed
        self.failure = ""
        """Text of the first error; empty before one."""
        self._warn = warn

    def failed(self, error: BaseException) -> None:
        """Note an error; only the first is told."""
        log.error("the capability %s failed", self.capability, exc_info=error)
        if self.failure:
            return
        self.failure = failure(self.capability, error)
        then = "no call is allowed any more" if self.fails_closed else "it is off until the session ends"
        self._warn(f"{self.failure}; {then}")

    async def asked(
        self,
        ask: Callable[[], Awaitable[ResultT]],
        otherwise: ResultT,
        check: Callable[[object], None],
        *,
        may_end_turn: bool = False,
    ) -> ResultT:
        """Return an answer of the capability, or `otherwise` where it fails or `check` raises TypeError for it.

        With `may_end_turn`, a PanpanError of a hook ends the turn.
        """
        if self.failure:
            return otherwise
        try:
            answer = await ask()
            check(answer)
            return answer
        except PanpanError as error:
            if may_end_turn:
                raise
            self.failed(error)
        except (Exception, SystemExit) as error:
            self.failed(error)
        return otherwise

    def listed(
        self, items: Callable[[], Iterable[ResultT]], kind: type[ResultT] | UnionType | None
    ) -> Sequence[ResultT]:
        """Return what the capability lists; nothing if that fails, or where one is not of the kind."""
        try:
            found = list(items())
            for item in found:
                _require(item, kind)
                if isinstance(item, Tool):
                    _ = item.name, item.definition  # without them the capability fails, not the session
            return found
        except (Exception, SystemExit) as error:
            self.failed(error)
            return ()


def _require(value: object, kind: type | tuple[type, ...] | UnionType | None) -> None:
    """Raise TypeError for a value of another type."""
    if kind is not None and not isinstance(value, kind):
        raise TypeError(f"{value!r:.80} is of the wrong type")


def _require_items(kind: type | tuple[type, ...]) -> Callable[[object], None]:
    def check(value: object) -> None:
        _require(value, (list, tuple))
        for item in value:  # type: ignore[attr-defined]
            _require(item, kind)

    return check


_MESSAGES = _require_items((UserMessage, AssistantMessage, SystemReminder, ToolResultMessage))
_ADDITIONS = _require_items((UserMessage, SystemReminder))
_REMINDERS = _require_items(SystemReminder)
_FILES = _require_items(FileChange)


def _of(*kinds: type) -> Callable[[object], None]:
    return lambda value: _require(value, kinds)


class IsolatedHook(Hook):
    """A hook of a capability from outside; `isolation` is shared by all hooks of it."""

    def __init__(self, inner: Hook, isolation: Isolation) -> None:
        self.inner = inner
        self._isolation = isolation
        self._asked = isolation.asked
        self._last: tuple[list[Message], list[Message]] = ([], [])
        """Messages of the last request that the hook changed, and what it made of them."""
        self.is_for_small_windows = inner.is_for_small_windows  # type: ignore[misc]

    def _read(self, value: Callable[[], ResultT], otherwise: ResultT, check: Callable[[object], None]) -> ResultT:
        if self._is_off:
            return otherwise
        try:
            found = value()
            check(found)
            return found
        except (Exception, SystemExit) as error:
            self._isolation.failed(error)
            return otherwise

    @property
    def turn_files(self) -> Sequence[FileChange]:
        return self._read(lambda: self.inner.turn_files, (), _FILES)

    @property
    def verification(self) -> Verification | None:
        return self._read(lambda: self.inner.verification, None, _of(Verification, _NOTHING))

    @property
    def wants_turn(self) -> bool:
        return self._read(lambda: self.inner.wants_turn, False, _of(bool))

    def ends_turn(self, round_: Round) -> bool:
        return self._read(lambda: self.inner.ends_turn(round_), False, _of(bool))

    async def wait_for_wake(self) -> None:
        await self._asked(self.inner.wait_for_wake, None, _of(_NOTHING))

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        return await self._asked(lambda: self.inner.turn_started(conversation), (), _ADDITIONS)

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        return await self._asked(lambda: self.inner.before_request(round_), (), _ADDITIONS, may_end_turn=True)

    async def transform_messages(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages as the hook changes them; one that changes what was sent before is out."""
        if self._is_off:
            return messages
        given = list(messages)
        answer: Sequence[Message] = await self._asked(
            lambda: self.inner.transform_messages(tuple(given)), messages, _MESSAGES
        )
        changed = list(answer)
        before, sent = self._last
        if given[: len(before)] == before and changed[: len(sent)] != sent:
            self._isolation.failed(PrefixChangedError(f"{type(self.inner).__name__} changed what was sent before"))
            return messages
        self._last = (given, changed)
        return messages if changed == given else changed

    async def compact(
        self, round_: Round, llm: ModelClient, refusal: ContextOverflowError | None
    ) -> AsyncGenerator[Waiting | Compacted, None]:
        if self._is_off:
            return
        try:
            async with aclosing(self.inner.compact(round_, llm, refusal)) as changes:
                async for change in changes:
                    yield change
        except PanpanError:
            raise
        except (Exception, SystemExit) as error:
            self._isolation.failed(error)

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        await self._asked(lambda: self.inner.after_reply(round_, reply), None, _of(_NOTHING), may_end_turn=True)

    async def before_tool(self, call: ToolCall) -> Decision | None:
        decision = await self._asked(lambda: self.inner.before_tool(call), None, _of(Allow, Ask, Deny, _NOTHING))
        return self.denies_all() or decision

    async def answer_question(self, call: ToolCall, question: PermissionQuestion) -> Allow | Deny | None:
        answer = await self._asked(lambda: self.inner.answer_question(call, question), None, _of(Allow, Deny, _NOTHING))
        return self.denies_all() or answer

    async def recheck(self, call: ToolCall) -> Deny | None:
        denial = await self._asked(lambda: self.inner.recheck(call), None, _of(Deny, _NOTHING))
        return self.denies_all() or denial

    def denies_all(self) -> Deny | None:
        if self._isolation.failure and self._isolation.fails_closed:
            return Deny(Reason(f"{self._isolation.failure}; it guards what may run"))
        return self._read(self.inner.denies_all, None, _of(Deny, _NOTHING))

    async def before_effect(self, call: ToolCall) -> None:
        await self._asked(lambda: self.inner.before_effect(call), None, _of(_NOTHING))

    async def revise_call(self, call: ToolCall) -> Mapping[str, Any] | None:
        return await self._asked(lambda: self.inner.revise_call(call), None, _of(Mapping, _NOTHING))

    async def after_sandbox_denial(self, call: ToolCall, blocked: SandboxDenial) -> Decision | None:
        again = await self._asked(
            lambda: self.inner.after_sandbox_denial(call, blocked), None, _of(Allow, Ask, Deny, _NOTHING)
        )
        return self.denies_all() or again

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        return await self._asked(lambda: self.inner.after_tool(call, output), output, _of(Output))

    async def call_refused(self, decided: PermissionDecided) -> None:
        await self._asked(lambda: self.inner.call_refused(decided), None, _of(_NOTHING))

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        return await self._asked(lambda: self.inner.after_round(round_, reply), (), _ADDITIONS)

    async def compaction_starts(self, trigger: CompactionTrigger, hint: str) -> None:
        await self._asked(lambda: self.inner.compaction_starts(trigger, hint), None, _of(_NOTHING), may_end_turn=True)

    async def compaction_made(self, compaction: Compaction) -> None:
        await self._asked(lambda: self.inner.compaction_made(compaction), None, _of(_NOTHING))

    async def pinned_reminders(self) -> Sequence[SystemReminder]:
        return await self._asked(self.inner.pinned_reminders, (), _REMINDERS)

    async def interrupted(self, conversation: Conversation) -> None:
        await self._asked(lambda: self.inner.interrupted(conversation), None, _of(_NOTHING))

    async def history_replaced(self, conversation: Conversation) -> None:
        await self._asked(lambda: self.inner.history_replaced(conversation), None, _of(_NOTHING))

    async def turn_ended(self, conversation: Conversation) -> None:
        await self._asked(lambda: self.inner.turn_ended(conversation), None, _of(_NOTHING))

    @property
    def _is_off(self) -> bool:
        return bool(self._isolation.failure)


class IsolatedSource(ReminderSource):
    """A source of reminders of a capability from outside; `isolation` is that of its hooks."""

    def __init__(self, inner: ReminderSource, isolation: Isolation) -> None:
        self._inner, self._isolation = inner, isolation

    async def turn_started(self, conversation: Conversation) -> None:
        await self._isolation.asked(lambda: self._inner.turn_started(conversation), None, _of(_NOTHING))

    async def after_tool(self, call: ToolCall, output: Output) -> None:
        await self._isolation.asked(lambda: self._inner.after_tool(call, output), None, _of(_NOTHING))

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        return await self._isolation.asked(lambda: self._inner.reminders(round_), (), _REMINDERS)

    async def turn_ended(self, conversation: Conversation) -> None:
        await self._isolation.asked(lambda: self._inner.turn_ended(conversation), None, _of(_NOTHING))

    async def history_replaced(self, conversation: Conversation) -> None:
        await self._isolation.asked(lambda: self._inner.history_replaced(conversation), None, _of(_NOTHING))


class IsolatedCapability(Capability):
    """A capability from outside. One that the settings require counts as a guard."""

    is_external = True

    def __init__(self, inner: Capability, warn: Callable[[str], None], *, is_required: bool = False) -> None:
        self.session, self.settings = inner.session, inner.settings
        self.name = inner.name  # type: ignore[misc]
        self._inner = inner
        self._isolation = Isolation(inner.name, fails_closed=inner.fails_closed or is_required, warn=warn)

    def commands(self) -> "Iterable[Command]":  # type: ignore[override]
        from panpan.session.command import Command

        commands = self._isolation.listed(self._inner.commands, Command)
        return [replace(one, run=self._guarded(one)) for one in commands]

    def _guarded(self, command: "Command") -> "Callable[[Terminal, str], Awaitable[None]]":
        async def run(terminal: "Terminal", rest: str) -> None:
            try:
                await command.run(terminal, rest)
            except PanpanError:
                raise
            except (Exception, SystemExit) as error:
                raise ConfigError(failure(self.name, error)) from error

        return run

    def services(self) -> Iterable[object]:
        return (self._inner, *self._isolation.listed(self._inner.services, None))

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return self._isolation.listed(lambda: self._inner.tools(agent), Tool)

    def unavailable(self) -> Iterable[str]:
        return self._isolation.listed(self._inner.unavailable, str)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        hooks = self._isolation.listed(lambda: self._inner.hooks(agent), Hook)
        if self._isolation.fails_closed:
            hooks = hooks or (Hook(),)  # so that its failure denies every call
        return [IsolatedHook(hook, self._isolation) for hook in hooks]

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        sources = self._isolation.listed(lambda: self._inner.reminders(agent), ReminderSource)
        return [IsolatedSource(source, self._isolation) for source in sources]

    def status(self) -> Iterable[StatusItem]:
        return () if self._isolation.failure else self._isolation.listed(self._inner.status, StatusItem)

    async def prepare_message(self, message: UserMessage) -> UserMessage:
        if self._isolation.failure:
            return message
        try:
            prepared = await self._inner.prepare_message(message)
            _require(prepared, UserMessage)
            return prepared
        except (Exception, SystemExit) as error:
            self._isolation.failed(error)
            return message

    def recover_result(self, call: UnfinishedCall) -> ToolResultMessage | None:
        results = self._isolation.listed(lambda: (self._inner.recover_result(call),), None)
        return next((result for result in results if isinstance(result, ToolResultMessage)), None)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        """Run it in a task of its own, so that what fails there ends neither the session nor another capability."""
        started, stop, ended = Event(), Event(), Event()

        async def run() -> None:
            try:
                async with self._inner.lifespan():
                    started.set()
                    await stop.wait()
            except (Exception, SystemExit) as error:
                self._isolation.failed(error)
            finally:
                started.set()
                ended.set()

        async with create_task_group() as group:
            scope = CancelScope(shield=True)  # so that it can clean up after a cancelled session

            async def shielded() -> None:
                with scope:
                    await run()

            group.start_soon(shielded)
            with move_on_after(CLEANUP_S):
                await started.wait()
            if not started.is_set():
                self._isolation.failed(TimeoutError(f"lifespan() has not begun after {CLEANUP_S:g} s"))
                scope.cancel()
            try:
                yield
            finally:
                stop.set()
                with move_on_after(CLEANUP_S, shield=True):
                    await ended.wait()
                scope.cancel()

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        except (Exception, SystemExit) as error:
            self._isolation.failed(error)
