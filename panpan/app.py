"""The composition root: the one place where the parts are put together.

Nothing here decides how a part works. It decides which features there are, and in which order they are asked.
"""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from panpan.capabilities.background.capability import BackgroundCapability
from panpan.capabilities.budget.capability import BudgetCapability
from panpan.capabilities.cassettes.capability import Cassettes
from panpan.capabilities.compaction.capability import CompactionCapability
from panpan.capabilities.datasets.capability import Datasets
from panpan.capabilities.environment.capability import Environment
from panpan.capabilities.files.capability import Files
from panpan.capabilities.guards.capability import Guards
from panpan.capabilities.history.capability import History
from panpan.capabilities.language_servers.capability import CodeIntelligenceCapability
from panpan.capabilities.local_model.capability import LocalModelCapability
from panpan.capabilities.mentions.capability import Mentions
from panpan.capabilities.packages.capability import Packages
from panpan.capabilities.permissions.capability import Permissions
from panpan.capabilities.plan_mode.capability import PlanModeCapability
from panpan.capabilities.project_context.capability import ProjectContext
from panpan.capabilities.questions.capability import Questions
from panpan.capabilities.reminders.capability import RemindersCapability
from panpan.capabilities.search.capability import Search
from panpan.capabilities.shell.capability import Shell
from panpan.capabilities.snapshots.capability import SnapshotsCapability
from panpan.capabilities.subagents.capability import SubagentsCapability
from panpan.capabilities.todos.capability import TodosCapability
from panpan.capabilities.web.capability import Web
from panpan.config.locations import Locations
from panpan.config.sources import Loaded, load_settings
from panpan.core.tool import Tool
from panpan.errors import ConfigError
from panpan.models.factory import AnswerWishes
from panpan.session.budget.timed_askers import timed_askers
from panpan.session.budget.turn_clock import TurnClock
from panpan.session.capability import Capability, provider_kinds
from panpan.session.command import Command
from panpan.session.context import Caller, SessionContext
from panpan.session.isolated import IsolatedCapability
from panpan.session.log import UnkeptLog
from panpan.session.made_title import title_maker
from panpan.session.models import PromptWishes, SessionModels
from panpan.session.opening import OpenedLog, WhichSession, earlier_model, open_log, opening_prefix
from panpan.session.outside import failure, is_required, named_capabilities, outside_capabilities
from panpan.session.session import Session, Titles
from panpan.session.setup import NO_MODEL, Setup, set_up
from panpan.session.slash_commands import LoadedCommands
from panpan.session.steering import Steering
from panpan.session.tap import Askers, Opening, Tap
from panpan.session.unfinished import Outcome
from panpan.system.files.folder_tree import temporary_folder
from panpan.system.web.network import WebNetwork
from panpan.types.asking import UserAsker
from panpan.types.permission import Asker
from panpan.types.plan import PlanAsker
from panpan.version import __version__

BUILTIN: Sequence[type[Capability]] = (
    Permissions,
    ProjectContext,
    Mentions,
    Files,
    Search,
    CodeIntelligenceCapability,
    Web,
    SubagentsCapability,
    Shell,
    Environment,
    Packages,
    Datasets,
    BackgroundCapability,
    Questions,
    PlanModeCapability,
    History,
    TodosCapability,
    BudgetCapability,
    RemindersCapability,
    CompactionCapability,
    SnapshotsCapability,
    LocalModelCapability,
    Cassettes,
    Guards,
)
"""The features. Their order is that of the tools that the model is told of, of the hooks, and of opening."""

PROVIDER_KINDS = provider_kinds(BUILTIN)
"""Kinds of models that the features bring along."""

SLASH_COMMANDS = "panpan.faces.session_commands"
"""The module that has them: what they show belongs to the faces, which are above this and never imported from here."""


@asynccontextmanager
async def open_session(
    cwd: str | Path = ".",
    *,
    overrides: Mapping[str, object] | None = None,
    why_model: str | None = None,
    continues: bool = False,
    resume: str | None = None,
    session: str | None = None,
    forks: bool = False,
    unfinished: Outcome | None = None,
    system_prompt: str | None = None,
    append_system_prompt: str | None = None,
    ask: Asker | None = None,
    ask_user: UserAsker | None = None,
    ask_plan: PlanAsker | None = None,
    says_yes: bool = False,
    is_attended: bool = False,
    trusts_project: bool = False,
    agents: Mapping[str, Any] | None = None,
    agent: str | None = None,
    capabilities: Sequence[type[Capability]] = (),
    env: Mapping[str, str] | None = None,
    tap: Tap | None = None,
    network: WebNetwork | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> AsyncGenerator[Session, None]:
    """Open a session in a folder, new or resumed.

    Args:
        cwd: The workspace: tools work here, and ask before they leave it.
        overrides: Settings by dotted key, such as `{"model": "smart", "permission.mode": "plan"}`; stronger than files
            and environment.
        why_model: Why `overrides` names the model, as half a sentence; None: the command line does.
        continues: Whether to go on with the newest session of the project.
        resume: The session to go on with: its id or the beginning of that, its title, or a part of that or of what the
            user said first.
        session: The session of this UUID or name, which is begun where there is none. With `continues` or `resume`, and
            `forks`: the id or name of the copy.
        forks: Whether to go on in a copy of the session, and leave that as it is.
        unfinished: What became of calls that the session left open in a crash, where nobody can be asked and the files
            do not tell; None: the first turn fails then.
        system_prompt: Used in place of panpan's own.
        append_system_prompt: Added behind it.
        ask: Puts permission questions to the user; None: nobody is there, and the answer is no.
        ask_user: Puts the model's questions to the user; None: nobody is there, and the model of a new session is not
            told that it may ask.
        ask_plan: Puts plans to the user; None: nobody is there to approve one, and in plan mode the plan is the result
            of the turn.
        says_yes: Whether questions are answered with yes, except those about protected paths and the sandbox.
        is_attended: Whether a user watches; if not, a turn has fewer rounds unless the settings say otherwise.
        trusts_project: Whether what the project's own settings say is believed in this session, as they are now,
            whatever the user said of the project; where requests go and with which key is never a project's.
        agents: Kinds of subagents beside those of files, by name: for each the keys of a definition, and `prompt`.
        agent: The kind of subagent that the main conversation of a new session is, by name; None: none.
        capabilities: Features beside panpan's own and those that the settings name.
        env: The environment; None is that of the process.
        tap: Sees all that crosses the session's borders, and may stand in for it, as a cassette does; closed with it.
        network: How tools reach the outside; None: as it is.
        warn: Told what the user should know, one sentence each.

    Raises:
        ConfigError: A setting, the model, the key or the session is not there or wrong.
        BudgetError: There is a budget and the model's price is not known.
    """
    logging.getLogger("panpan").addHandler(logging.NullHandler())  # or Python prints what nobody listens to
    env = os.environ if env is None else env
    read = partial(set_up, Path(cwd), env, every_tool=(), kinds=PROVIDER_KINDS, trusts_project=trusts_project)
    setup = read(overrides=overrides or {}, why_model=why_model)
    which = WhichSession(continues, resume, session, forks)
    if agent is not None and not which.is_there(setup.locations):  # one that goes on stays what it was begun as
        from panpan.capabilities.subagents.main_agent import main_agent

        main = main_agent(agent, setup, agents, tools=lambda: _tools_of(setup), warn=warn)
        why_model = f"the agent {agent} names it" if "model" in main.overrides else why_model
        overrides = {**(overrides or {}), **main.overrides}
        setup = read(overrides=overrides, why_model=why_model)
        append_system_prompt = "\n\n".join(filter(None, (main.prompt, append_system_prompt)))
    is_tapped = tap is not None
    tap = tap or Tap()
    clock = TurnClock()
    caller = Caller(
        tap.askers(timed_askers(Askers(ask, ask_user, ask_plan), clock)),
        clock,
        unfinished,
        PromptWishes(system_prompt, append_system_prompt),
        says_yes=says_yes,
        is_attended=is_attended,
        is_tapped=is_tapped,
        agents=agents,
        network=network,
        warn=warn,
    )
    async with AsyncExitStack() as stack:
        stack.callback(tap.close)
        setup = tap.setup(setup)
        logged = open_log(setup, which, is_interactive=is_attended, warn=warn)
        if logged.forked_from:
            stack.callback(_discard_fork, logged)
        stack.callback(logged.log.close)
        opened = _session(_context(setup, logged, caller, capabilities), tap)
        stack.push_async_callback(opened.agent.model.aclose)
        if logged.title is not None:
            opened.rename(logged.title)
        stack.pop_all()  # from here on the session closes them
    try:
        async with opened:
            if not is_attended and opened.model_note:  # where somebody watches, his face says it
                warn(opened.model_note)
            yield opened
    finally:
        tap.close()
        if forks and not is_attended and opened.agent.unfinished.are_open:  # it has nothing that its origin has not
            _discard_fork(logged)


def _context(setup: Setup, logged: OpenedLog, caller: Caller, given: Sequence[type[Capability]] = ()) -> SessionContext:
    """Return the context of a session, with its capabilities: panpan's own, those from outside, and the last one."""
    context = SessionContext(setup, logged, caller)
    *first, last = BUILTIN
    for kind in first:
        context.capabilities.add(kind(context))
    for kind in (*given, *_named(setup, caller.warn)):
        if (one := _isolated(kind, context)) is not None:
            context.capabilities.add(one)
    context.capabilities.add(last(context))
    return context


def _named(setup: Setup, warn: Callable[[str], None]) -> Sequence[type[Capability]]:
    """Return the capabilities from outside that the settings name."""
    if not setup.settings.capabilities:  # looking for packages takes some milliseconds
        return ()
    there = outside_capabilities(setup.locations, is_trusted=setup.loaded.trust.is_trusted)
    return named_capabilities(setup.settings, there, [kind.name for kind in BUILTIN], warn)


def _isolated(kind: type[Capability], context: SessionContext) -> Capability | None:
    """Return a capability from outside; None where it cannot be made.

    Raises:
        ConfigError: A setting of it is wrong, or it guards something and cannot be made.
    """
    try:
        return IsolatedCapability(kind(context), context.warn)
    except ConfigError:
        raise
    except Exception as error:
        why = failure(kind.name, error)
        if kind.is_guard or is_required(kind.name, context.settings):
            raise ConfigError(f"{why}; it is a guard, so that no session opens without it") from error
        context.warn(f"{why}; the session goes on without it")
        return None


def _session(context: SessionContext, tap: Tap) -> Session:
    """Return the session that a context and its capabilities make."""
    caller, opened, agent = context.caller, context.opened, context.main
    setup = replace(context.setup, every_tool=context.capabilities.tools(agent))
    unavailable = tap.without_use([name for one in context.capabilities for name in one.unavailable()])
    steering = Steering()
    # it is last, so that what another hook refuses still waits
    hooks = (*context.capabilities.hooks(agent), steering)
    models = SessionModels(setup, hooks, caller.prompts, unavailable=unavailable, tap=tap)
    context.capabilities.offer(models)
    model = models.first()
    agent.use(model)
    are_chosen = caller.prompts.are_chosen
    context.recorder.take_prefix(opening_prefix(model, opened.before, are_prompts_chosen=are_chosen, warn=context.warn))
    tap.opened(
        Opening(
            context.setup,
            opened.log,
            opened.before.messages,
            opened.before.compactions,
            system_prompt=caller.prompts.override,
            append_system_prompt=caller.prompts.append,
            is_attended=caller.is_attended,
            max_rounds=agent.rights.max_rounds,
            panpan_version=__version__,
            without_use=unavailable,
        )
    )
    for warning in (*model.warnings, *setup.warnings_of_settings):
        context.warn(warning)
    make_title = title_maker(setup, context.budget, is_attended=caller.is_attended, warn=context.warn)
    return Session(
        agent,
        context.capabilities,
        settings=setup.settings,
        steering=steering,
        models=models,
        commands=LoadedCommands(SLASH_COMMANDS, setup.env),
        titles=Titles(opened.before.title, None if caller.is_tapped else make_title),
        earlier_model=earlier_model(setup, opened.before),
    )


def slash_commands() -> Sequence[Command]:
    """Return the slash commands of the capabilities."""
    return [command for kind in BUILTIN for command in kind.commands()]


def tools_of_folder(cwd: Path, loaded: Loaded, locations: Locations) -> Sequence[Tool[Any]]:
    """Return the tools that a session in a folder would have, to be listed and judged by; none can be run.

    Args:
        cwd: The workspace, canonical.
        loaded: Its settings.
        locations: Where panpan's own files are.
    """
    return _tools_of(Setup(cwd, {}, {}, locations, loaded, (), NO_MODEL, AnswerWishes()))


def known_tools() -> Sequence[str]:
    """Return the names of the tools that sessions have, whatever the folder and its settings."""
    with temporary_folder("panpan-tools-") as folder:
        locations = Locations.find(folder, {"PANPAN_HOME": str(folder)})
        loaded = load_settings(folder, {}, {}, locations)
        return [tool.name for tool in tools_of_folder(folder, loaded, locations)]


def _tools_of(setup: Setup) -> Sequence[Tool[Any]]:
    caller = Caller(Askers(), TurnClock())
    context = _context(setup, OpenedLog("", UnkeptLog(setup.cwd)), caller)
    return context.capabilities.tools(context.main)


def _discard_fork(opened: OpenedLog) -> None:
    from panpan.session.forking import discard_fork  # few sessions are copies

    discard_fork(opened.log.path)
