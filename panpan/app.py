"""The composition root: the one place where the parts are put together.

Nothing here decides how a part works. It decides only on the features and their order.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
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
from panpan.capabilities.hooks.capability import HooksCapability
from panpan.capabilities.language_servers.capability import CodeIntelligenceCapability
from panpan.capabilities.local_model.capability import LocalModelCapability
from panpan.capabilities.mcp.capability import McpCapability
from panpan.capabilities.mentions.capability import Mentions
from panpan.capabilities.output_styles.capability import OutputStylesCapability
from panpan.capabilities.packages.capability import Packages
from panpan.capabilities.permissions.capability import Permissions
from panpan.capabilities.plan_mode.capability import PlanModeCapability
from panpan.capabilities.plugins.capability import PluginsCapability
from panpan.capabilities.project_context.capability import ProjectContext
from panpan.capabilities.questions.capability import Questions
from panpan.capabilities.receipts.capability import Receipts
from panpan.capabilities.reminders.capability import RemindersCapability
from panpan.capabilities.search.capability import Search
from panpan.capabilities.shell.capability import Shell
from panpan.capabilities.side_questions.capability import SideQuestions
from panpan.capabilities.skills.capability import SkillsCapability
from panpan.capabilities.snapshots.capability import SnapshotsCapability
from panpan.capabilities.structured_output.capability import StructuredOutputCapability
from panpan.capabilities.subagents.capability import SubagentsCapability
from panpan.capabilities.todos.capability import TodosCapability
from panpan.capabilities.web.capability import Web
from panpan.config.locations import Locations
from panpan.config.sources import Loaded, load_settings
from panpan.core.tool import Tool
from panpan.errors import ConfigError
from panpan.models.factory import GenerationOptions
from panpan.models.provider_kind import ProviderKinds
from panpan.session.budget.budget import TurnClock
from panpan.session.capability import Capability, provider_kinds
from panpan.session.command import Command, LoadedCommands
from panpan.session.context import SessionContext
from panpan.session.external.isolated import IsolatedCapability
from panpan.session.external.loading import external_capabilities, failure, is_required, named_capabilities
from panpan.session.frontend import Frontend, SessionConfig, timed_askers
from panpan.session.log.session_log import NullLog
from panpan.session.models import SessionModels
from panpan.session.one_shot import title_generator
from panpan.session.opening import OpenedLog, earlier_model, open_log, opening_prefix
from panpan.session.session import Session, Titles
from panpan.session.setup import NO_MODEL, SessionSetup
from panpan.session.turn import Steering
from panpan.system.files.folder_tree import temporary_folder

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
    Receipts,
    BackgroundCapability,
    Questions,
    PlanModeCapability,
    History,
    TodosCapability,
    BudgetCapability,
    RemindersCapability,
    CompactionCapability,
    SnapshotsCapability,
    SideQuestions,
    PluginsCapability,
    SkillsCapability,
    McpCapability,
    OutputStylesCapability,
    LocalModelCapability,
    Cassettes,
    StructuredOutputCapability,
    HooksCapability,
    Guards,
)
"""The features. Tools and hooks have the same order, and features are opened in it."""

PROVIDER_KINDS = provider_kinds(BUILTIN)
"""Provider kinds of panpan's own features."""


@asynccontextmanager
async def opened_session(config: SessionConfig, frontend: Frontend) -> AsyncGenerator[Session, None]:
    """Open a session, and close it at the end of the `with` block.

    Raises:
        ConfigError: A setting, the model, the key or the session is not there or wrong.
        BudgetError: There is a budget and the model's price is not known.
    """
    logging.getLogger("panpan").addHandler(logging.NullHandler())  # without a handler Python prints log records
    config, setup = _settled(config, frontend)
    interceptor, clock, which = config.interceptor, TurnClock(), config.which
    frontend = replace(frontend, askers=interceptor.askers(timed_askers(frontend.askers, clock)))
    async with AsyncExitStack() as stack:
        setup = interceptor.setup(setup)
        logged = open_log(setup, which, is_interactive=frontend.is_interactive, warn=frontend.warn)
        if logged.forked_from:
            stack.callback(_discard_fork, logged)
        stack.callback(logged.log.close)
        if (host := config.options.get("host")) is not None:
            host.log_opened(logged.log)
        context, steering = _context(setup, logged, config, frontend, clock), Steering()
        models = _models(context, steering)
        context.main.use(models.first())
        stack.push_async_callback(context.main.model.aclose)
        opened = _session(context, models, steering)
        stack.pop_all()  # from here on the session closes them
    try:
        async with opened:
            if logged.title is not None:
                opened.rename(logged.title)
            if which.cut is not None:
                which.cut.check(opened.conversation.messages, opened.info.id)
                await opened.rewind(which.cut.at, is_kept=True)
            if not frontend.is_interactive and opened.model_note:  # otherwise the face shows it
                frontend.warn(opened.model_note)
            yield opened
    finally:
        has_nothing_new = opened.agent.unfinished.are_open
        if which.fork and not frontend.is_interactive and has_nothing_new:
            _discard_fork(logged)


def _settled(config: SessionConfig, frontend: Frontend) -> tuple[SessionConfig, SessionSetup]:
    """Return the configuration with the additions of the main agent's definition, and the setup for it."""
    setup, agent = config.resolve(kinds_of), config.options.get("agent")
    if agent is None or config.which.exists(setup.locations):  # a resumed session keeps its agent
        return config, setup
    from panpan.capabilities.subagents.main_agent import main_agent

    main = main_agent(
        agent, setup, config.options.get("agents"), tools=lambda: _tools_of(setup, config), warn=frontend.warn
    )
    why_model = f"the agent {agent} names it" if "model" in main.overrides else config.options.get("why_model")
    config = config.with_options(
        why_model=why_model,
        overrides={**(config.options.get("overrides") or {}), **main.overrides},
        append_system_prompt="\n\n".join(filter(None, (main.prompt, config.prompts.append))),
    )
    return config, config.resolve(kinds_of)


def _context(
    setup: SessionSetup, logged: OpenedLog, config: SessionConfig, frontend: Frontend, clock: TurnClock
) -> SessionContext:
    """Return the context of a session with its capabilities; those from outside come before the last of `BUILTIN`."""
    context = SessionContext(setup, logged, config, frontend, clock)
    if (own := config.interceptor.capability(context)) is not None:
        context.capabilities.add(own)
    *first, last = BUILTIN
    for kind in first:
        context.capabilities.add(kind(context))
    given = (*config.options.get("capabilities", ()), *_named(setup.loaded, setup.locations, frontend.warn))
    for kind in dict.fromkeys(given):
        if kind.name in {own.name for own in BUILTIN}:
            raise ConfigError(f"{kind.name} is the name of a capability of panpan's own; choose another name")
        if (one := _isolated(kind, context)) is not None:
            context.capabilities.add(one)
    context.capabilities.add(last(context))
    return context


def kinds_of(loaded: Loaded, locations: Locations, given: Iterable[type[Capability]] = ()) -> ProviderKinds:
    """Return the provider kinds that can be used, with the places of their classes.

    Args:
        loaded: The settings, which may name capabilities from outside.
        locations: Locations of panpan's own files.
        given: Further capabilities.

    Raises:
        ConfigError: Two capabilities have the same kind, or a required one cannot be used.
    """
    further = (*given, *_named(loaded, locations, lambda _: None))
    return provider_kinds((*BUILTIN, *further)) if further else PROVIDER_KINDS


def _named(loaded: Loaded, locations: Locations, warn: Callable[[str], None]) -> Sequence[type[Capability]]:
    if not loaded.settings.capabilities:  # looking for packages takes milliseconds
        return ()
    there = external_capabilities(locations, loaded.trust)
    return named_capabilities(loaded.settings, there, [kind.name for kind in BUILTIN], warn)


def _isolated(kind: type[Capability], context: SessionContext) -> Capability | None:
    """Return a capability from outside; None if it cannot be created.

    Raises:
        ConfigError: A setting of it is wrong, or it is a guard and cannot be created.
    """
    try:
        return IsolatedCapability(kind(context), context.warn, is_required=is_required(kind.name, context.settings))
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        why = failure(kind.name, error)
        if kind.fails_closed or is_required(kind.name, context.settings):
            raise ConfigError(f"{why}; it is a guard, so that no session opens without it") from error
        context.warn(f"{why}; the session goes on without it")
        return None


def _models(context: SessionContext, steering: Steering) -> SessionModels:
    """Return the models of the main agent, with the tools and hooks of its capabilities."""
    agent, config = context.main, context.config
    setup = replace(context.setup, every_tool=context.config.interceptor.offered(context.capabilities.tools(agent)))
    # steering is last, so that a message waits if another hook refuses to go on
    hooks = (*context.capabilities.hooks(agent), steering)
    unavailable = context.unavailable
    models = SessionModels(setup, hooks, config.prompts, unavailable=unavailable, interceptor=config.interceptor)
    context.capabilities.register(models)
    return models


def _session(context: SessionContext, models: SessionModels, steering: Steering) -> Session:
    """Return the session with a context, its capabilities and its models."""
    frontend, opened, agent = context.frontend, context.opened, context.main
    setup, model, prompts = models.setup, agent.model, context.config.prompts
    context.recorder.take_prefix(
        opening_prefix(model, opened.before, are_prompts_chosen=prompts.are_chosen, warn=context.warn)
    )
    for warning in (*model.warnings, *setup.warnings_of_settings):
        context.warn(warning)
    make_title = title_generator(setup, context.budget, is_interactive=frontend.is_interactive, warn=context.warn)
    return Session(
        agent,
        context.capabilities,
        settings=setup.settings,
        steering=steering,
        models=models,
        commands=LoadedCommands(lambda: frontend.slash_commands(setup.env, context.capabilities.session_commands)),
        titles=Titles(opened.before.title, None if context.config.is_intercepted else make_title),
        earlier_model=earlier_model(setup, opened.before),
    )


def slash_commands() -> Sequence[Command]:
    """Return the slash commands of the capabilities."""
    return [command for kind in BUILTIN for command in kind.commands()]


def tools_of_folder(cwd: Path, loaded: Loaded, locations: Locations) -> Sequence[Tool[Any]]:
    """Return the tools that a session in a folder would have, for listing and for judging calls; none of them can run.

    Args:
        cwd: The workspace, canonical.
        loaded: Its settings.
        locations: Locations of panpan's own files.
    """
    return _tools_of(SessionSetup(cwd, {}, {}, locations, loaded, (), NO_MODEL, GenerationOptions()))


def known_tools() -> Sequence[str]:
    """Return the names of the tools that sessions have, whatever the folder and its settings."""
    with temporary_folder("panpan-tools-") as folder:
        locations = Locations.find(folder, {"PANPAN_HOME": str(folder)})
        loaded = load_settings(folder, {}, {}, locations)
        return [tool.name for tool in tools_of_folder(folder, loaded, locations)]


def _tools_of(setup: SessionSetup, config: SessionConfig | None = None) -> Sequence[Tool[Any]]:
    config = config or SessionConfig(setup.cwd, {})
    context = _context(setup, OpenedLog("", NullLog(setup.cwd)), config, Frontend(), TurnClock())
    return context.capabilities.tools(context.main)


def _discard_fork(opened: OpenedLog) -> None:
    from panpan.session.log.recorder import discard_fork  # few sessions are copies

    discard_fork(opened.log.path)
