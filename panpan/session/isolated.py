"""Hooks, tools and other parts of capabilities from outside, so that an error in one costs that one and no turn.

A guard is the exception: where it fails, nothing is allowed any more, since it might have said no.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import Event, create_task_group, current_time

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.core.tool import Tool
from panpan.core.tool_executor import CLEANUP_S
from panpan.errors import ConfigError, ContextOverflowError, PanpanError
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.open_calls import UnfinishedCall
from panpan.session.outside import failure
from panpan.session.reminders.source import ReminderSource
from panpan.types.events import Compacted, Waiting
from panpan.types.file_change import FileChange
from panpan.types.llm import ModelClient
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage
from panpan.types.permission import Allow, Decision, Deny, PermissionQuestion, Reason
from panpan.types.tool import Output

if TYPE_CHECKING:
    from panpan.session.command import Command, Terminal

ResultT = TypeVar("ResultT")

log = logging.getLogger(__name__)


class PrefixChangedError(Exception):
    """A hook changed messages that the model was sent before, so that nothing of them counts as known any more."""


class Isolation:
    """What one capability has left of its credit: after its first error it is out of the session.

    Args:
        capability: Its name.
        is_guard: True if its failure denies every call from then on.
        warn: Told of the error, in one sentence.
    """

    def __init__(self, capability: str, *, is_guard: bool, warn: Callable[[str], None]) -> None:
        self.capability = capability
        self.is_guard = is_guard
        self.failure = ""
        """What went wrong; empty: nothing has."""
        self._warn = warn

    def failed(self, error: Exception) -> None:
        """Note an error; only the first is told."""
        log.exception("the capability %s failed", self.capability, exc_info=error)
        if self.failure:
            return
        self.failure = failure(self.capability, error)
        then = "no call is allowed any more" if self.is_guard else "it is off until the session ends"
        self._warn(f"{self.failure}; {then}")

    def listed(self, items: Callable[[], Iterable[ResultT]]) -> Sequence[ResultT]:
        """Return what the capability lists; nothing where that fails."""
        try:
            return list(items())
        except Exception as error:
            self.failed(error)
            return ()


class IsolatedHook(Hook):
    """A hook of a capability from outside.

    Args:
        inner: The hook.
        isolation: Shared by all hooks of the capability.
    """

    def __init__(self, inner: Hook, isolation: Isolation) -> None:
        self.inner = inner
        self._isolation = isolation
        self._last: tuple[list[Message], list[Message]] = ([], [])
        """Messages of the last request that the hook changed, and what it made of them."""
        self.is_for_small_windows = inner.is_for_small_windows  # type: ignore[misc]

    async def _asked(self, answer: Awaitable[ResultT], otherwise: ResultT) -> ResultT:
        """Return an answer of the hook, or what stands for it where it fails. What panpan itself raises goes on."""
        try:
            return await answer
        except PanpanError:
            raise
        except Exception as error:
            self._isolation.failed(error)
            return otherwise

    def _read(self, value: Callable[[], ResultT], otherwise: ResultT) -> ResultT:
        if self._isolation.failure:
            return otherwise
        try:
            return value()
        except Exception as error:
            self._isolation.failed(error)
            return otherwise

    @property
    def turn_files(self) -> Sequence[FileChange]:
        return self._read(lambda: self.inner.turn_files, ())

    @property
    def has_news(self) -> bool:
        return self._read(lambda: self.inner.has_news, False)

    def ends_turn(self, round_: Round) -> bool:
        return self._read(lambda: self.inner.ends_turn(round_), False)

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        return () if self._is_off else await self._asked(self.inner.turn_started(conversation), ())

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        return () if self._is_off else await self._asked(self.inner.before_request(round_), ())

    async def transformed(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages as the hook changes them; one that changes what was sent before is out."""
        if self._is_off:
            return messages
        given = list(messages)
        changed = list(await self._asked(self.inner.transformed(tuple(given)), given))
        before, sent = self._last
        if given[: len(before)] == before and changed[: len(sent)] != sent:
            self._isolation.failed(PrefixChangedError(f"{type(self.inner).__name__} changed what was sent before"))
            return messages
        self._last = (given, changed) if changed != given or sent != before else ([], [])
        return changed

    async def make_room(
        self, round_: Round, llm: ModelClient, refusal: ContextOverflowError | None
    ) -> AsyncGenerator[Waiting | Compacted, None]:
        if self._is_off:
            return
        try:
            async with aclosing(self.inner.make_room(round_, llm, refusal)) as changes:
                async for change in changes:
                    yield change
        except PanpanError:
            raise
        except Exception as error:
            self._isolation.failed(error)

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        if not self._is_off:
            await self._asked(self.inner.after_reply(round_, reply), None)

    async def before_tool(self, call: ToolCall) -> Decision | None:
        decision = None if self._is_off else await self._asked(self.inner.before_tool(call), None)
        return self._denial or decision

    async def answer(self, call: ToolCall, question: PermissionQuestion) -> Allow | Deny | None:
        answer = None if self._is_off else await self._asked(self.inner.answer(call, question), None)
        return self._denial or answer

    async def denies_now(self, call: ToolCall) -> Deny | None:
        denial = None if self._is_off else await self._asked(self.inner.denies_now(call), None)
        return self._denial or denial

    async def before_effect(self, call: ToolCall) -> None:
        if not self._is_off:
            await self._asked(self.inner.before_effect(call), None)

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        return output if self._is_off else await self._asked(self.inner.after_tool(call, output), output)

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        return () if self._is_off else await self._asked(self.inner.after_round(round_, reply), ())

    async def pinned(self) -> Sequence[SystemReminder]:
        return () if self._is_off else await self._asked(self.inner.pinned(), ())

    async def interrupted(self, conversation: Conversation) -> None:
        if not self._is_off:
            await self._asked(self.inner.interrupted(conversation), None)

    async def history_replaced(self, conversation: Conversation) -> None:
        if not self._is_off:
            await self._asked(self.inner.history_replaced(conversation), None)

    async def turn_ended(self, conversation: Conversation) -> None:
        if not self._is_off:
            await self._asked(self.inner.turn_ended(conversation), None)

    @property
    def _is_off(self) -> bool:
        return bool(self._isolation.failure)

    @property
    def _denial(self) -> Deny | None:
        if not (self._isolation.failure and self._isolation.is_guard):
            return None
        return Deny(Reason(f"{self._isolation.failure}; it guards what may run"))


class IsolatedCapability(Capability):
    """A capability from outside.

    Args:
        inner: The capability.
        warn: Told of its first error, in one sentence.
    """

    is_outside = True

    def __init__(self, inner: Capability, warn: Callable[[str], None]) -> None:
        self.session, self.settings = inner.session, inner.settings
        self.name = inner.name  # type: ignore[misc]
        self._inner = inner
        self._isolation = Isolation(inner.name, is_guard=inner.is_guard, warn=warn)

    def commands(self) -> "Iterable[Command]":  # type: ignore[override]
        return [replace(one, run=self._guarded(one)) for one in self._isolation.listed(self._inner.commands)]

    def _guarded(self, command: "Command") -> "Callable[[Terminal, str], Awaitable[None]]":
        async def run(terminal: "Terminal", rest: str) -> None:
            try:
                await command.run(terminal, rest)
            except PanpanError:
                raise
            except Exception as error:
                raise ConfigError(failure(self.name, error)) from error

        return run

    def offers(self) -> Iterable[object]:
        return (self._inner, *self._isolation.listed(self._inner.offers))

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return self._isolation.listed(lambda: self._inner.tools(agent))

    def unavailable(self) -> Iterable[str]:
        return self._isolation.listed(self._inner.unavailable)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        hooks = self._isolation.listed(lambda: self._inner.hooks(agent))
        if self._isolation.is_guard:
            hooks = hooks or (Hook(),)  # so that its failure denies
        return [IsolatedHook(hook, self._isolation) for hook in hooks]

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        return self._isolation.listed(lambda: self._inner.reminders(agent))

    async def prepared(self, message: UserMessage) -> UserMessage:
        if self._isolation.failure:
            return message
        try:
            return await self._inner.prepared(message)
        except PanpanError:
            raise
        except Exception as error:
            self._isolation.failed(error)
            return message

    def known_result(self, call: UnfinishedCall) -> ToolResultMessage | None:
        results = self._isolation.listed(lambda: (self._inner.known_result(call),))
        return next(iter(results), None)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Run it in a task of its own, so that what fails there ends neither the session nor another capability."""
        started, stop = Event(), Event()

        async def run() -> None:
            try:
                async with self._inner.running():
                    started.set()
                    await stop.wait()
            except Exception as error:
                self._isolation.failed(error)
            finally:
                started.set()

        async with create_task_group() as group:
            group.start_soon(run)
            await started.wait()
            try:
                yield
            finally:
                stop.set()
                group.cancel_scope.deadline = current_time() + CLEANUP_S
