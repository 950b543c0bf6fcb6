"""Hooks: commands of the user that run at fixed points of a session."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal
from weakref import WeakKeyDictionary

from anyio import create_task_group, move_on_after
from anyio.abc import TaskGroup

from panpan.capabilities.hooks.settings import HookSettings, hooks_of_settings
from panpan.config.places import BroughtFile
from panpan.core.hooks import Hook
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.command import Command, Terminal, say
from panpan.session.context import SessionContext
from panpan.session.log.record_kinds import SystemRecord, default_if_invalid
from panpan.session.user_hooks import HookListing, HookProgress, HooksOfUser
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


class HooksCapability(Capability, HooksOfUser):
    """Runs the hooks that the user has configured. Without any, nothing of them is imported."""

    name = "hooks"
    record_types = (HookRecord,)
    settings_model = HookSettings

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._beside: TaskGroup | None = None
        """Hooks that nobody waits for; None while the session is not open."""
        self._are_off = False
        """True if the user has switched all hooks off."""
        self._of_agents: WeakKeyDictionary[Agent, UserHooks] = WeakKeyDictionary()
        self._observers: list[Callable[[HookProgress], None]] = []

    @cached_property
    def _configured(self) -> "ConfiguredHooks | None":
        """The hooks; None where no file has any, or nothing may run."""
        if self._is_played:
            return None
        places, problems = self.session.setup.loaded.places, list[str]()
        content = places.trust.files.content
        if waiting := [
            name for name in places.waiting("hooks") if b'"hooks"' in content[name] or name.endswith("hooks.json")
        ]:
            self.session.warn(f"hooks of {', '.join(waiting)} do not run until you trust the project: panpan trust")
        files = [*places.files(["hooks"], problems), *hooks_of_settings(self.session.setup.loaded.sources)]
        for problem in problems:
            self.session.warn(problem)
        if not files:
            return None
        from panpan.capabilities.hooks.configuration import read_hooks

        found = read_hooks(files)
        self._are_off = found.are_off
        for problem in found.problems:
            self.session.warn(problem)
        return found if found.handlers else None

    @property
    def _is_played(self) -> bool:
        """True if what hooks did is in the recording that is played."""
        return self.session.config.interceptor.plays_back

    @cached_property
    def _may_have_more(self) -> bool:
        """True if a skill or command of the user may bring hooks along."""
        places = self.session.setup.loaded.places
        return not self._is_played and next(places.files(["commands", "skills"], []), None) is not None

    def _hooks_of(self, agent: Agent, *, are_needed: bool = False) -> "UserHooks | None":
        if agent not in self._of_agents:
            has_host = self.session.config.options.get("host") is not None
            if not are_needed and self._configured is None and not (self._may_have_more or has_host):
                return None
            from panpan.capabilities.hooks.user_hooks import UserHooks

            handlers = () if self._configured is None else self._configured.handlers
            self._of_agents[agent] = UserHooks(self.session, agent, handlers, self._run_beside, self._tell)
        return self._of_agents[agent]

    def services(self) -> Iterable[object]:
        return (self,)

    def inherit(self, parent: Agent, child: Agent) -> None:
        above = self._of_agents.get(parent)
        if above is not None and above.held and (hooks := self._hooks_of(child, are_needed=True)) is not None:
            hooks.hold(above.held)

    def let_go(self, agent: Agent) -> None:
        if (hooks := self._of_agents.get(agent)) is not None:
            hooks.let_go()

    def hold(self, agent: Agent, file: BroughtFile, *, message: str = "") -> None:
        from panpan.capabilities.hooks.configuration import read_hooks

        found = read_hooks([file])
        for problem in found.problems:
            self.session.warn(clean_line(problem))
        if not found.handlers or self._is_played or self._are_off:
            return
        if (hooks := self._hooks_of(agent, are_needed=True)) is not None:
            hooks.hold(found.handlers, message)

    def observe(self, tell: Callable[[HookProgress], None]) -> None:
        self._observers.append(tell)

    def _tell(self, progress: HookProgress) -> None:
        for tell in self._observers:
            tell(progress)

    async def tell(self, event: str, subject: str, told: Mapping[str, Any]) -> None:
        if (hooks := self._hooks_of(self.session.main)) is not None:
            await hooks.tell(event, subject, told)

    def _run_beside(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        if self._beside is not None:
            self._beside.start_soon(work)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        hooks = self._hooks_of(agent)
        return () if hooks is None else (hooks,)

    @property
    def lines(self) -> Sequence[str]:
        """The hooks, one line for each."""
        return [] if self._configured is None else [one.line for one in self._configured.handlers]

    @property
    def listing(self) -> HookListing:
        from panpan.capabilities.hooks.configuration import hooks_of_host
        from panpan.capabilities.hooks.contract import FIRED, UNMATCHED

        host = self.session.config.options.get("host")
        of_files = self._configured.handlers if self._configured else ()
        of_host = () if host is None else hooks_of_host(host)
        return HookListing([one.listed for one in (*of_files, *of_host)], FIRED, UNMATCHED, self._are_off)

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return (Command("hooks", "Show your hooks", _show, is_immediate=True),)

    async def prepare_message(self, message: UserMessage) -> UserMessage:
        if (hooks := self._hooks_of(self.session.main)) is not None:
            await hooks.look_at_prompt(message)
        return message

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        self._hooks_of(self.session.main)
        try:
            async with create_task_group() as self._beside:
                yield
                self._beside.cancel_scope.cancel("the session is over")
        finally:  # the session may end because all of it is cancelled
            self._beside = None
            if (hooks := self._of_agents.get(self.session.main)) is not None and hooks.has_begun:
                with move_on_after(_END_S, shield=True):
                    await hooks.fire("SessionEnd", "other", {"reason": "other"})
