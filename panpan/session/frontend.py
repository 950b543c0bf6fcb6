"""Arguments of opening a session: the request, the frontend that shows the session, and its interceptors."""

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypedDict, TypeVar, cast

from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.session.budget.budget import TurnClock
from panpan.session.command import Command, NoCommands, SlashCommands
from panpan.session.host import Host
from panpan.session.opening import Cut, SessionSelection
from panpan.session.setup import KindsOf, PromptOptions, SessionSetup, load_setup
from panpan.session.stop_at_question import StopAtQuestion, WhenAsked
from panpan.session.unfinished import Outcome
from panpan.system.web.network import WebNetwork
from panpan.types.dataclass import dataclass
from panpan.types.llm import Provider
from panpan.types.permission import Asker, PlanAsker, UserAsker

if TYPE_CHECKING:
    from panpan.session.capability import Capability
    from panpan.session.context import SessionContext


P = ParamSpec("P")
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Askers:
    """Functions that ask the user, by the kind of question; None if nobody answers such questions."""

    permission: Asker | None = None
    user: UserAsker | None = None
    plan: PlanAsker | None = None


class SessionInterceptor:
    """Sees all of a session and changes nothing; a subclass overrides what it needs."""

    @property
    def own_files(self) -> Sequence[Path]:
        """Canonical files that it writes, which are no part of the workspace."""
        return ()

    @property
    def plays_back(self) -> bool:
        """True if it answers in the place of all tools, so that nothing of the session may run."""
        return False

    def askers(self, askers: Askers) -> Askers:
        """Return who answers in the place of `askers`; called first."""
        return askers

    def provider(self, provider: Provider) -> Provider:
        """Return what is asked in the place of a provider; called for each model of the session."""
        return provider

    def offered(self, tools: Sequence[Tool[Any]]) -> Sequence[Tool[Any]]:
        """Return the tools of the main agent, before any is switched off; called once."""
        return tools

    def tools(self, tools: Mapping[str, Tool[Any]]) -> Mapping[str, Tool[Any]]:
        """Return what is called in the place of the tools, by the same names."""
        return tools

    def setup(self, setup: SessionSetup) -> SessionSetup:
        """Return what is settled before the session is opened, and again for each model that the user chooses in it."""
        return setup

    def hooks(self, hooks: Sequence[Hook]) -> Sequence[Hook]:
        """Return what the loop asks in the place of the session's hooks."""
        return hooks

    def capability(self, session: "SessionContext") -> "Capability | None":
        """Return the capability that goes with it, which is the first of the session; None without one."""
        return None


def timed_askers(askers: Askers, clock: TurnClock) -> Askers:
    """Return askers that pause `clock` until the user has answered."""
    return Askers(
        None if askers.permission is None else _timed(askers.permission, clock),
        None if askers.user is None else _timed(askers.user, clock),
        None if askers.plan is None else _timed(askers.plan, clock),
    )


def _timed(
    ask: Callable[P, Coroutine[Any, Any, AnswerT]], clock: TurnClock
) -> Callable[P, Coroutine[Any, Any, AnswerT]]:
    async def timed(*args: P.args, **options: P.kwargs) -> AnswerT:
        with clock.paused():
            return await ask(*args, **options)

    return timed


MakeCommands: TypeAlias = Callable[[Mapping[str, str], Sequence[Command]], SlashCommands]
"""Makes slash commands; given the environment that panpan was started in, and commands of capabilities from outside."""


class SessionOptions(TypedDict, total=False):
    """Keywords of `panpan.open_session`; each may be left out."""

    overrides: Mapping[str, object] | None
    """Settings by dotted key, such as `{"model": "smart", "permission.mode": "plan"}`; stronger than files and
    environment."""
    why_model: str | None
    """Reason why `overrides` names the model, as half a sentence; None if the command line does."""
    continue_latest: bool
    """True to go on with the newest session of the project."""
    resume: str | None
    """The session to go on with: its id or the beginning of the id, its title, or a part of the title or of the user's
    first message."""
    session: str | None
    """UUID or name of the session, which is begun if there is none. With `continue_latest` or `resume`, and `fork`: the
    id or name of the copy."""
    fork: bool
    """True to go on in a copy of the session, and leave that as it is."""
    cut: Cut | None
    """The place at which the earlier session goes on; None for its end."""
    log_folder: Path | None
    """Folder for the log of a new session or a copy; None for that of the project. A session of the project then goes
    on only in a copy."""
    unfinished: Outcome | None
    """Outcome of the calls that the session left open in a crash, if nobody can be asked and the files do not tell.
    With None, the first turn fails then."""
    system_prompt: str | None
    """System prompt in place of panpan's own."""
    append_system_prompt: str | None
    """Text to add to the system prompt."""
    ask: Asker | None
    """Asks the user permission questions; with None the answer is no."""
    ask_user: UserAsker | None
    """Asks the user the model's questions; with None, the model of a new session does not see its tool for them."""
    ask_plan: PlanAsker | None
    """Asks the user to approve plans; with None, the plan is the result of the turn in plan mode."""
    when_asked: WhenAsked
    """Fate of a turn that needs an answer and has nobody to ask: "refuse" refuses the call, "stop" ends the turn with
    `AnswerNeededError`, which has the question, and runs nothing more. The answer is your next message then."""
    auto_approve: bool
    """True if questions are answered with yes, except those about protected paths and the sandbox."""
    is_interactive: bool
    """True if a user watches; if not, a turn has fewer rounds unless the settings say otherwise."""
    trusts_project: bool
    """True if this session trusts the project's own settings, as they are now, whatever the user said of the project.
    A project never decides where requests go and with which key."""
    agents: Mapping[str, Any] | None
    """Kinds of subagents beside those of files, by name: for each the keys of a definition, and `prompt`."""
    agent: str | None
    """Name of the kind of subagent as which the main conversation of a new session runs; None for none."""
    mcp_config: Sequence[str]
    """MCP servers beside those of files: JSON objects as in `.mcp.json`, or files with one."""
    strict_mcp_config: bool
    """True if no other MCP servers count."""
    json_schema: Mapping[str, Any] | None
    """JSON schema that the answer of each turn has to fit; None for answers in words. `session[StructuredAnswer]` then
    has the answer."""
    skills: Sequence[str] | None
    """Names of the skills that the model may load; None for all that are meant for it."""
    capabilities: "Sequence[type[Capability]]"
    """Features beside panpan's own and those that the settings name."""
    unavailable: Sequence[str] | None
    """Names of tools that the model of a new session does not get; None for those that cannot work here."""
    host: Host | None
    """The program that runs panpan, with hooks and MCP servers of its own; None if there is none."""
    env: Mapping[str, str] | None
    """The environment; None for that of the process."""
    interceptor: SessionInterceptor | None
    """Observer of everything that the model, the tools and the user are asked. It may replace them, as a cassette
    does."""
    network: WebNetwork | None
    """Replacement for the network; None for the real one."""
    warn: Callable[[str], None]
    """Function that gets warnings for the user, one sentence each."""


@dataclass(frozen=True, slots=True)
class Frontend:
    """The program that shows a session and answers its questions."""

    askers: Askers = Askers()
    auto_approve: bool = False
    """True if questions are answered with yes, but for those that only a person may answer."""
    is_interactive: bool = False
    """True if a user watches."""
    unfinished: Outcome | None = None
    """Outcome of the calls that the session left open in a crash; None if it is not known."""
    warn: Callable[[str], None] = lambda _: None
    """Function that gets warnings for the user, one sentence each."""
    stop: StopAtQuestion | None = None
    """Ends the turn at a question that nobody answers; None if such calls are refused."""
    slash_commands: MakeCommands = lambda env, further: NoCommands()
    """Function that makes the slash commands; called when one is needed."""

    @classmethod
    def of(cls, options: SessionOptions, slash_commands: MakeCommands) -> "Frontend":
        return cls(
            Askers(options.get("ask"), options.get("ask_user"), options.get("ask_plan")),
            options.get("auto_approve", False),
            options.get("is_interactive", False),
            options.get("unfinished"),
            options.get("warn", lambda _: None),
            StopAtQuestion() if options.get("when_asked") == "stop" else None,
            slash_commands,
        )


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """The session that is wanted."""

    cwd: Path
    """The workspace: tools work here, and ask before they leave it."""
    options: SessionOptions

    @property
    def which(self) -> SessionSelection:
        """The session of the log that is wanted; with nothing said, a new one."""
        options = self.options
        return SessionSelection(
            options.get("continue_latest", False),
            options.get("resume"),
            options.get("session"),
            options.get("fork", False),
            options.get("cut"),
            options.get("log_folder"),
        )

    @property
    def prompts(self) -> PromptOptions:
        return PromptOptions(self.options.get("system_prompt"), self.options.get("append_system_prompt"))

    @property
    def env(self) -> Mapping[str, str]:
        env = self.options.get("env")
        return os.environ if env is None else env

    @property
    def interceptor(self) -> SessionInterceptor:
        """The interceptor of the session; by default one that changes nothing."""
        return self.options.get("interceptor") or SessionInterceptor()

    @property
    def is_intercepted(self) -> bool:
        """True if what crosses the session's borders is seen by another, which must not miss any of it."""
        return self.options.get("interceptor") is not None

    def resolve(self, kinds: KindsOf) -> SessionSetup:
        """Return its settings, with the `kinds` of models of the capabilities, and what follows from them.

        Raises:
            ConfigError: A setting, the model, the key or the folder is not there or wrong.
            BudgetError: There is a budget and the price of the model is not known.
        """
        options = self.options
        return load_setup(
            self.cwd,
            self.env,
            options.get("overrides") or {},
            (),
            kinds=partial(kinds, given=options.get("capabilities", ())),
            why_model=options.get("why_model"),
            trusts_project=options.get("trusts_project", False),
        )

    def with_options(self, **changed: Any) -> "SessionConfig":
        return replace(self, options=cast("SessionOptions", {**self.options, **changed}))
