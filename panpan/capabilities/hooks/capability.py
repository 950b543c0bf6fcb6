"""Hooks: commands of the user that run at fixed points of a session."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from anyio import create_task_group, move_on_after
from anyio.abc import TaskGroup

from panpan.capabilities.hooks.settings import HookSettings, hooks_of_settings
from panpan.core.hooks import Hook
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.command import Command, Terminal, say
from panpan.session.context import SessionContext
from panpan.session.log.record_kinds import SystemRecord, default_if_invalid
from panpan.system.text.terminal_text import clean_line
from panpan.types.messages import UserMessage

if TYPE_CHECKING:
    from panpan.capabilities.hooks.configuration import ConfiguredHooks
    from panpan.capabilities.hooks.user_hooks import UserHooks

_END_S = 12.0
"""Most seconds that hooks may hold up the end of a session."""


class HookRecord(SystemRecord):
    """One run of a hook."""

    subtype: Literal["hook_ran"] = "hook_ran"
    event: str
    hook: str
    """Its command."""
    place: str
    verdict: str = ""
    reason: str = ""
    failure: str = ""
    tool_use_id: str = ""
    duration_ms: Annotated[int, default_if_invalid(0)] = 0


async def _show(terminal: Terminal, rest: str) -> None:
    if not (lines := terminal.session[HooksCapability].lines):
        say(terminal, "there are no hooks; they would be in ~/.panpan/hooks.json")
    for line in lines:
        say(terminal, clean_line(line))


class HooksCapability(Capability):
    """Runs the hooks that the user has configured. Without any, nothing of them is imported."""

    name = "hooks"
    record_types = (HookRecord,)
    settings_model = HookSettings

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._beside: TaskGroup | None = None
        """Hooks that nobody waits for; None while the session is not open."""

    @cached_property
    def _configured(self) -> "ConfiguredHooks | None":
        """The hooks; None where no file has any, or nothing may run."""
        if self.session.config.interceptor.plays_back:
            return None
        places, problems = self.session.setup.loaded.places, list[str]()
        if waiting := [name for name in places.waiting("hooks") if b'"hooks"' in places.trust.files.content[name]]:
            self.session.warn(f"hooks of {', '.join(waiting)} do not run until you trust the project: panpan trust")
        files = [*places.files(["hooks"], problems), *hooks_of_settings(self.session.setup.loaded.sources)]
        for problem in problems:
            self.session.warn(problem)
        if not files:
            return None
        from panpan.capabilities.hooks.configuration import read_hooks

        found = read_hooks(files)
        for problem in found.problems:
            self.session.warn(problem)
        return found if found.handlers else None

    @cached_property
    def _of_main(self) -> "UserHooks | None":
        return self._hooks_of(self.session.main)

    def _hooks_of(self, agent: Agent) -> "UserHooks | None":
        if self._configured is None:
            return None
        from panpan.capabilities.hooks.user_hooks import UserHooks

        return UserHooks(self.session, agent, self._configured.handlers, self._run_beside)

    def _run_beside(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        if self._beside is not None:
            self._beside.start_soon(work)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        hooks = self._of_main if agent is self.session.main else self._hooks_of(agent)
        return () if hooks is None else (hooks,)

    @property
    def lines(self) -> Sequence[str]:
        """The hooks, one line for each."""
        return [] if self._configured is None else [one.line for one in self._configured.handlers]

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return (Command("hooks", "Show your hooks", _show, is_immediate=True),)

    async def prepare_message(self, message: UserMessage) -> UserMessage:
        if self._of_main is not None:
            await self._of_main.look_at_prompt(message)
        return message

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        if (hooks := self._of_main) is None:
            yield
            return
        try:
            async with create_task_group() as self._beside:
                yield
                self._beside.cancel_scope.cancel("the session is over")
        finally:  # the session may end because all of it is cancelled
            self._beside = None
            if hooks.has_begun:
                with move_on_after(_END_S, shield=True):
                    await hooks.fire("SessionEnd", "other", {"reason": "other"})
